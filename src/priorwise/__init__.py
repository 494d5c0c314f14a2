"""priorwise: many short decision tasks that resemble each other.

Learn the prior from past tasks, see how much is lost if it is wrong, and run the policy that earns
most in the few pulls there are. The names are listed in ``__init__.pyi``.
"""

import priorwise._starting  # before all that takes time

# isort: split
import priorwise.simulate  # noqa: F401 - its folder, before the function of that name
from priorwise._lazy import lazily

__version__ = "0.1.0"
__getattr__, __dir__, __all__ = lazily(__name__, __file__)
for _folder in ("priorwise", "simulate"):
    del globals()[_folder]
