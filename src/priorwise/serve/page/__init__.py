"""A page to watch live decisions: tasks, arms, rewards, the prior, and whether all is well.

``routes(service)`` returns its addresses, below ``/watch``, for a Starlette application.
"""

from typing import Any

from priorwise.serve.page.reading import Service as Service


def routes(service: Service) -> list[Any]:
    """Return the addresses of the page that watches a service."""
    from priorwise.serve.page.app import routes as made

    return list(made(service))
