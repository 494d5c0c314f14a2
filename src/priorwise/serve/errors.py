"""Errors of live decisions, apart from wrong arguments (``ArgumentError``)."""

from typing import ClassVar


class Refused(ValueError):  # noqa: N818 - it is no fault of the program
    """A request that cannot be carried out as things stand; nothing was changed."""

    kept: ClassVar[bool] = False
    """Whether a store keeps what was written before."""
    status: ClassVar[int] = 409
    """What a service answers, with the word ``code``."""
    code: ClassVar[str] = "conflict"


class NotFound(Refused):
    """No such task, token, unit or version."""

    status, code = 404, "not_found"


class Conflict(Refused):
    """Contradicts what is recorded: a closed task, another reward for the same token."""


class TooLate(Refused):
    """The reward came after its window; that the pull is closed now is kept."""

    kept, status, code = True, 410, "too_late"


class TooMuch(Refused):
    """A request takes longer to compute than this service allows."""

    status, code = 422, "wrong_value"


class Unavailable(RuntimeError):  # noqa: N818 - as the others are called
    """The store did not answer or did not take it; it is not known whether a change was kept.

    ``public`` is what a client of a service may read: no paths, hosts or texts of a database.
    """

    status: ClassVar[int] = 503
    code: ClassVar[str] = "unavailable"

    def __init__(self, message: str, public: str | None = None) -> None:
        """Say what happened."""
        super().__init__(message)
        self.public = message if public is None else public


class TooMany(Unavailable):
    """One client has as much work waiting as it may."""
