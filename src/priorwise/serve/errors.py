"""What live decisions refuse, apart from input that makes no sense (ValueError and TypeError)."""


class Refused(ValueError):  # noqa: N818 - it is no fault of the program
    """A request that cannot be carried out as things stand; nothing was changed."""

    kept = False
    """Whether a store keeps what was written before."""


class NotFound(Refused):
    """No such task, token, unit or version."""


class Conflict(Refused):
    """Contradicts what is recorded: a closed task, another reward for the same token."""


class TooLate(Refused):
    """The reward came after its window; that the pull is closed now is kept."""

    kept = True


class Unavailable(RuntimeError):  # noqa: N818 - as the others are called
    """The store did not answer or did not take it; it is not known whether a change was kept.

    ``public`` is what a client of a service may read: no paths, hosts or texts of a database.
    """

    def __init__(self, message: str, public: str | None = None) -> None:
        """Say what happened."""
        super().__init__(message)
        self.public = message if public is None else public
