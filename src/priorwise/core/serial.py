"""JSON for frozen values: versioned, exact round trip, open to classes from elsewhere."""

from __future__ import annotations

import inspect
import json
import os
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import Any, ClassVar, Final, Self

import numpy as np

VERSION: Final = 1


class Serializable:
    """A frozen value with a ``family`` name and a JSON form; subclasses register themselves under that name.

    Each parameter of the constructor is written from the attribute of that name: numbers, strings, arrays, and other serializable
    values. Floats are written so that they read back bit for bit.
    """

    family: ClassVar[str]
    _families: ClassVar[dict[str, type[Serializable]]] = {}
    _homes: ClassVar[dict[str, str]] = {}  # modules of families that are not imported before a file names them

    def __init_subclass__(cls, **options: Any) -> None:
        """Register the class under its family name."""
        super().__init_subclass__(**options)
        if "family" in cls.__dict__:
            known = Serializable._families.get(cls.family)
            if known is not None and known.__qualname__ != cls.__qualname__:
                raise TypeError(f"family {cls.family!r} is taken by {known.__qualname__}; choose another name")
            Serializable._families[cls.family] = cls

    @staticmethod
    def found_in(homes: Mapping[str, str]) -> None:
        """Say in which module each family stands, for those that are imported only when a file names them."""
        Serializable._homes.update(homes)

    def to_json(self) -> str:
        """Return the JSON text."""
        return json.dumps({"priorwise": VERSION, **self._fields()}, indent=2)

    def _fields(self) -> dict[str, Any]:
        return {
            "family": self.family,
            **{name: _plain(getattr(self, name)) for name in inspect.signature(type(self)).parameters},
        }

    def __eq__(self, other: object) -> bool:
        """Equal if of one class with equal fields."""
        return type(self) is type(other) and isinstance(other, Serializable) and self.to_json() == other.to_json()

    def __hash__(self) -> int:
        """Hash of the JSON form."""
        return hash(self.to_json())

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the JSON text to a file; the file appears only when whole."""
        write_text(Path(path), self.to_json() + "\n")

    @classmethod
    def load(cls, source: str | os.PathLike[str]) -> Self:
        """Read from a path or from JSON text."""
        if not isinstance(source, (str, os.PathLike)):
            raise TypeError(f"source must be a path or JSON text, got {type(source).__name__}")
        text = os.fspath(source).lstrip("\ufeff \n\r\t")
        if not text.startswith(("{", "[")):
            path = Path(source)
            if not path.is_file():
                what = "a directory" if path.is_dir() else "no file, and not JSON text either"
                raise FileNotFoundError(f"cannot read {path}: it is {what}")
            text = path.read_text(encoding="utf-8-sig")
        try:
            content = json.loads(text)
        except json.JSONDecodeError as error:
            raise ValueError(f"not valid JSON: {error}") from None
        if not isinstance(content, dict) or "priorwise" not in content:
            raise ValueError("not a priorwise file: it has no 'priorwise' version field")
        if content["priorwise"] is True or content["priorwise"] != VERSION:
            raise ValueError(f"this file has version {content['priorwise']!r}, this priorwise reads version {VERSION}")
        del content["priorwise"]
        value = _build(content)
        if not isinstance(value, cls):
            raise ValueError(f"expected a {cls.__name__}, but the file holds a {type(value).__name__}")
        return value


def write_text(path: Path, text: str) -> None:
    """Write a file under a temporary name, then rename it."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        temporary.write_text(text, encoding="utf-8")
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def _plain(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, Serializable):
        return value._fields()
    if value is None or isinstance(value, (str, int, float, list, tuple, dict)):
        return value
    raise TypeError(f"a {type(value).__name__} has no JSON form; derive its class from priorwise.Serializable")


def _build(content: dict[str, Any]) -> Serializable:
    name = content.get("family")
    families, homes = Serializable._families, Serializable._homes
    key = str(name)
    if key not in families and key in homes:
        import_module(homes[key])
    cls = families.get(key)
    if cls is None:
        raise ValueError(f"unknown family {name!r}; known are {', '.join(sorted({*families, *homes}))}")
    fields = {k: _build(v) if isinstance(v, dict) and "family" in v else v for k, v in content.items() if k != "family"}
    parameters = inspect.signature(cls).parameters
    if unknown := sorted(set(fields) - set(parameters)):
        raise ValueError(f"family {name!r} has no field {unknown[0]!r}; it has {', '.join(parameters)}")
    required = {key for key, parameter in parameters.items() if parameter.default is inspect.Parameter.empty}
    if missing := sorted(required - set(fields)):
        raise ValueError(f"family {name!r} needs the field {missing[0]!r}")
    return cls(**fields)
