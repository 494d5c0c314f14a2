"""JSON for frozen values: versioned, exact round trip, open to classes from elsewhere."""

import inspect
import json
import math
import os
from collections.abc import Mapping
from importlib import import_module
from importlib.metadata import entry_points
from pathlib import Path
from pkgutil import iter_modules
from typing import Any, ClassVar, Final, Self

import numpy as np

from priorwise.core import validation
from priorwise.core.errors import SHOWN_PATH, ArgumentError, ArgumentTypeError, shown
from priorwise.core.files import file_path, write_whole
from priorwise.core.validation import numbers, word

VERSION: Final = 1

SENSELESS: Final = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError)
"""What constructors raise for values that make no sense."""

LARGEST_FILE: Final = 1 << 30
"""Bytes; a prior of 5,000 arms with all its covariances takes half of it."""

DEEPEST: Final = 16
"""Lists within lists; NumPy refuses more than 32 or 64 dimensions without saying of what."""

LONGEST_INTEGER: Final = 300  # digits; numbers beyond leave the range of floats


GROUP: Final = "priorwise.families"
"""Our folder of families, and the group of entry points of other packages: each names a module that
registers its family when imported.
"""


class Serializable:
    """A frozen value with a ``family`` name and a JSON form; subclasses register themselves under
    that name.

    Each parameter of the constructor is written from the attribute of that name: numbers, strings,
    arrays, and other serializable values; one that is only given by name is left out where it has
    its default. Floats are written so that they read back bit for bit.
    """

    family: ClassVar[str]
    _families: ClassVar[dict[str, "type[Serializable]"]] = {}
    # modules of families that are imported only when a file names them
    _homes: ClassVar[dict[str, str]] = {"prior-fit": "priorwise.fitting.fits"}

    def __init_subclass__(cls, **options: Any) -> None:
        """Register the class under its family name."""
        super().__init_subclass__(**options)
        if "family" in cls.__dict__:
            known = Serializable._families.get(cls.family)
            if known is not None and known.__qualname__ != cls.__qualname__:
                raise ArgumentTypeError(
                    "family",
                    f"must be new, but {known.__qualname__} has it",
                    got=cls.family,
                    cure="choose another name",
                )
            Serializable._families[cls.family] = cls

    def to_json(self) -> str:
        """Return the JSON text."""
        return json.dumps({"priorwise": VERSION, **self._fields()}, indent=2)

    def _fields(self) -> dict[str, Any]:
        return self._written(self._arguments())

    def _written(self, given: dict[str, Any]) -> dict[str, Any]:
        content = {"family": self.family}
        for name, parameter in inspect.signature(type(self)).parameters.items():
            value = given[name]
            if parameter.kind is not parameter.KEYWORD_ONLY or value is not parameter.default:
                content[name] = _plain(value)
        return content

    def replaced(self, **changes: Any) -> Self:
        """Return a copy with some parameters changed, checked as any new value is."""
        return type(self)(**self._arguments() | changes)

    def _arguments(self) -> dict[str, Any]:
        """Parameters of the constructor by name: the attributes of these names."""
        return {name: getattr(self, name) for name in inspect.signature(type(self)).parameters}

    def __eq__(self, other: object) -> bool:
        """Equal if of one class with equal fields."""
        if not isinstance(other, Serializable) or type(self) is not type(other):
            return False
        return self.to_json() == other.to_json()

    def __hash__(self) -> int:
        """Hash of the JSON form."""
        return hash(self.to_json())

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the JSON text to a file; the file appears only when whole."""
        write_whole(file_path(path), f"{self.to_json()}\n".encode())

    @classmethod
    def load(cls, source: str | os.PathLike[str]) -> Self:
        """Read from a path or from JSON text; an error names the file and what is wrong with it."""
        text = os.fspath(source) if isinstance(source, os.PathLike) else source
        validation.instance("source", text, str, "a path or JSON text")
        if not isinstance(source, str) or not text.lstrip("\ufeff \n\r\t").startswith(("{", "[")):
            try:
                return cls._read(_text_of(Path(source)))
            except ArgumentError as error:
                raise error.inside(shown(text, quoted=False, most=SHOWN_PATH), ": ") from error
        return cls._read(text)

    @classmethod
    def _read(cls, text: str) -> Self:
        content = _content(text)
        if not isinstance(content, dict) or "priorwise" not in content:
            raise ArgumentError(
                "text", "is not a priorwise file", cure="it has no 'priorwise' version field"
            )
        if content["priorwise"] is True or content["priorwise"] != VERSION:
            raise ArgumentError(
                "version", f"must be {VERSION} for this priorwise", got=content["priorwise"]
            )
        del content["priorwise"]
        try:
            value = _build(content)
        except RecursionError:
            raise ArgumentError("text", "has values nested too deeply for a prior") from None
        if not isinstance(value, cls):
            raise ArgumentError("text", f"must hold a {cls.__name__}", got=type(value))
        return value

    @classmethod
    def _from_fields(cls, fields: dict[str, Any]) -> Self:
        """Build the value from what a file holds."""
        return cls(**fields)


def load_prior(source: str | os.PathLike[str]) -> Any:
    """Read a prior from a path or from JSON text, as ``prior.save`` and ``prior.to_json`` write it;
    of a saved fit, its prior.
    """
    value = Serializable.load(source)
    prior = getattr(value, "prior", value)  # a fit has one inside
    if not hasattr(prior, "belief"):
        raise ArgumentError("source", "must hold a prior or a fit", got=type(value))
    return prior


def _text_of(path: Path) -> str:
    """Return the text of a file, if it is one of a size and an encoding that a prior may have."""
    name = shown(str(path), quoted=False, most=SHOWN_PATH)
    if not os.path.isfile(path):  # noqa: PTH113 - unlike Path's, it also answers for names that cannot be
        what = "a directory" if os.path.isdir(path) else "no file, and not JSON text either"  # noqa: PTH112
        raise FileNotFoundError(f"cannot read {name}: it is {what}")
    if path.stat().st_size > LARGEST_FILE:
        raise ArgumentError(
            "file", f"must have at most {LARGEST_FILE:,} bytes", got=path.stat().st_size
        )
    content = path.read_bytes()
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        wide = content[:2] in (b"\xff\xfe", b"\xfe\xff")
        kind = "UTF-16" if wide else "another encoding, or no text at all"
        raise ArgumentError(
            "file",
            f"must be UTF-8 text, but is {kind} (byte {error.start:,})",
            cure="save it as UTF-8",
        ) from None


def _content(text: str) -> Any:
    """Parse JSON; what Python's parser lets pass or stumbles over is refused by name."""

    def integer(digits: str) -> int:
        if len(digits) > LONGEST_INTEGER:
            raise ArgumentError(
                "text",
                f"has a number of {len(digits):,} digits, {shown(digits, quoted=False)}",
                cure="round it",
            )
        return int(digits)

    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        out = dict(pairs)
        if len(out) < len(pairs):
            names = [name for name, _ in pairs]
            twice = next(name for name in names if names.count(name) > 1)
            raise ArgumentError("text", f"has the field {shown(twice)} twice", cure="leave one out")
        return out

    try:
        return json.loads(text.lstrip("\ufeff"), parse_int=integer, object_pairs_hook=once)
    except json.JSONDecodeError as error:
        raise ArgumentError("text", f"is not valid JSON: {error}") from None
    except RecursionError:
        raise ArgumentError("text", "has brackets nested too deeply for a prior") from None


def _plain(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, Serializable):
        return value._fields()
    if isinstance(value, (list, tuple)) and any(isinstance(each, Serializable) for each in value):
        return [_plain(each) for each in value]
    if value is None or isinstance(value, (str, int, float, list, tuple, dict)):
        return value
    raise ArgumentTypeError(
        type(value).__name__, "has no JSON form", cure="derive it from priorwise.core.Serializable"
    )


def discover() -> None:
    """Import every family: those of this package, and the packages that say in their metadata that
    they bring some.
    """
    ours = import_module(GROUP)
    for folder in iter_modules(ours.__path__, f"{GROUP}."):
        if folder.ispkg:
            import_module(folder.name)
    for entry in entry_points(group=GROUP):
        entry.load()


def _built(value: Any) -> Any:
    return _build(value) if isinstance(value, dict) and "family" in value else value


def _build(content: dict[str, Any]) -> "Serializable":
    name = content.get("family")
    families, homes = Serializable._families, Serializable._homes
    key = str(name)
    if key not in families and key not in homes:
        discover()
    if key not in families and key in homes:
        import_module(homes[key])
    cls = families.get(key)
    if cls is None:
        # people write priors by hand, and nothing else
        known = ", ".join(
            sorted(each for each, kind in families.items() if hasattr(kind, "belief"))
        )
        raise ArgumentError("family", f"must be one of {known}", got=name)
    fields = {
        k: [_built(each) for each in v] if isinstance(v, list) else _built(v)
        for k, v in content.items()
        if k != "family"
    }
    parameters = inspect.signature(cls).parameters
    if unknown := sorted(set(fields) - set(parameters)):
        raise ArgumentError(
            key, f"has no field {shown(unknown[0])}", cure=f"it has {', '.join(parameters)}"
        )
    required = {key for key, each in parameters.items() if each.default is each.empty}
    if missing := sorted(required - set(fields)):
        raise ArgumentError(key, f"needs the field {missing[0]!r}")
    for field, value in fields.items():
        if _depth(value) > DEEPEST:
            raise ArgumentError(
                f"{key}.{field}", f"must not be lists within lists over {DEEPEST} deep"
            )
    try:
        return cls._from_fields(fields)
    except ArgumentError as error:
        raise error.inside(key) from error
    except (*SENSELESS, RecursionError) as error:
        raise ArgumentError(key, f"cannot be made of these fields: {error}") from error
    except MemoryError as error:
        raise ArgumentError(key, f"needs more memory than there is: {error}") from error


def _depth(value: Any) -> int:
    depth = 0
    while isinstance(value, list) and value and depth <= DEEPEST:
        value, depth = value[0], depth + 1
    return depth


# Numbers that may be NaN or infinite, for which JSON has no numbers.


def errors(name: str, value: Any) -> dict[str, Any]:
    """Arrays or floats by parameter, of numbers that are not negative; in JSON, None stands for NaN
    and "inf" for an infinity.
    """
    if not isinstance(value, Mapping):
        raise ArgumentTypeError(
            name, "must be arrays by name, such as {'mean': [0.1, 0.2]}", got=value
        )
    out = {}
    for key, each in value.items():
        label = f"{name}[{shown(key)}]"
        word(f"a name in {name}", key)
        array = numbers(label, unwritten(label, each))
        if (array < 0.0).any():
            raise ArgumentError(label, "must not be negative", got=np.nanmin(array))
        array.setflags(write=False)
        out[key] = array if array.ndim else float(array)
    return out


def unwritten(name: str, value: Any) -> Any:
    """Read NaN and infinities as JSON has them."""
    if isinstance(value, (list, tuple)):
        return [unwritten(name, each) for each in value]
    if value is None:
        return math.nan
    return number(name, value) if isinstance(value, (str, bool)) else value


def number(name: str, value: Any) -> float:
    """Return a number, infinite or NaN ones included, which JSON has as words."""
    if isinstance(value, str) and value in ("inf", "-inf", "nan"):
        return float(value)
    if isinstance(value, bool) or not isinstance(value, (int, float, np.integer, np.floating)):
        raise ArgumentTypeError(name, "must be a number", got=value)
    return float(value)


def written(value: Any, nan: str | None) -> Any:
    """Replace what standard JSON has no number for: infinities become "inf" and "-inf", NaN what is
    given for it.
    """
    if isinstance(value, list):
        return [written(each, nan) for each in value]
    if not isinstance(value, float) or math.isfinite(value):
        return value
    return nan if math.isnan(value) else str(value)
