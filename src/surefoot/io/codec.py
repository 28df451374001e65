"""One way to turn values into JSON and plain arrays, and back: for models, checkpoints and settings.

What can be saved is numbers, text, lists, tuples, dictionaries, arrays, and objects of registered
classes: dataclasses and named tuples that are made again by their own constructor from their own
fields. Nothing is unpickled, and nothing in a file can run: a name that is not registered is refused.
"""

import dataclasses
import math
from collections.abc import Mapping
from functools import cache
from typing import Any, TypeVar

import numpy as np

from surefoot.exceptions import InvalidInputError, InvalidTypeError, ModelFileError

Kind = TypeVar("Kind", bound=type)

_CLASSES: dict[str, type] = {}
# What JSON cannot say is an object with one of these marks.
_ARRAY, _FLOAT, _TUPLE, _PAIRS, _CLASS = "__array__", "__float__", "__tuple__", "__pairs__", "__class__"
_MARKS = (_ARRAY, _FLOAT, _TUPLE, _PAIRS, _CLASS)
_PLAIN = (bool, int, str, type(None))  # what JSON says as it is
# Deeper nesting than this is no value of ours.
DEEPEST = 40


def register(kind: Kind) -> Kind:
    """Let objects of a class be saved and loaded by the name of the class.

    The class must be a dataclass or a named tuple whose constructor takes its fields, made of values
    that can be saved, and checks them. Import the module that registers it before loading a file.

    Examples
    --------
    >>> import dataclasses
    >>> @register
    ... @dataclasses.dataclass(frozen=True)
    ... class Spoilage:
    ...     share: float
    >>> arrays = {}
    >>> unpack(pack("cost", Spoilage(0.2), arrays), arrays)
    Spoilage(share=0.2)
    """
    named_tuple = isinstance(kind, type) and issubclass(kind, tuple) and hasattr(kind, "_fields")
    if not (isinstance(kind, type) and (dataclasses.is_dataclass(kind) or named_tuple)):
        raise InvalidTypeError(f"register must be given a dataclass or a named tuple, got {kind!r}.")
    known = _CLASSES.get(kind.__name__)
    if known is not None and known.__module__ != kind.__module__:
        raise InvalidInputError(
            f"register must be given a class with a name of its own, got {kind.__name__!r} again: "
            f"{known.__module__} has one."
        )
    _CLASSES[kind.__name__] = kind
    return kind


def is_registered(value: Any) -> bool:
    """Whether an object's own class was registered."""
    return _CLASSES.get(type(value).__name__) is type(value)


def pack(name: str, value: Any, arrays: dict[str, Any]) -> Any:
    """Return a value as JSON; arrays go into ``arrays`` and leave their name.

    ``name`` is how messages call the value.
    """
    kind = type(value)
    if kind in _PLAIN or (kind is float and math.isfinite(value)):  # most values are
        return value
    if isinstance(value, np.ndarray):
        if value.dtype.hasobject:
            raise ModelFileError(
                f"{name} must be an array of numbers or text to be saved, got objects."
            )
        # What several parts share, such as the centres of forecasts, is written once.
        known = (key for key, array in arrays.items() if array is value)
        key = next(known, f"array_{len(arrays)}")
        arrays[key] = value
        return {_ARRAY: key}
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return {_FLOAT: repr(value)}
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if is_registered(value):
        return {_CLASS: type(value).__name__, "fields": _fields(name, value, arrays)}
    if isinstance(value, list):
        return [pack(name, entry, arrays) for entry in value]
    if isinstance(value, tuple):
        return {_TUPLE: [pack(name, entry, arrays) for entry in value]}
    if isinstance(value, Mapping):
        return _mapping(name, value, arrays)
    raise ModelFileError(
        f"{name} must be made of numbers, text, arrays and registered classes to be saved, got "
        f"{value!r}: see surefoot.register."
    )


def _fields(name: str, value: Any, arrays: dict[str, Any]) -> dict[str, Any]:
    kind: Any = type(value)
    names = _field_names(kind)
    return {key: pack(f"{name}.{key}", getattr(value, key), arrays) for key in names}


@cache
def _field_names(kind: Any) -> tuple[str, ...]:
    if dataclasses.is_dataclass(kind):
        return tuple(field.name for field in dataclasses.fields(kind) if field.init)
    return tuple(kind._fields)


def _mapping(name: str, value: Mapping[Any, Any], arrays: dict[str, Any]) -> Any:
    if all(isinstance(key, str) and key not in _MARKS for key in value):
        return {key: pack(f"{name}.{key}", entry, arrays) for key, entry in value.items()}
    # JSON would turn a whole number as key into text.
    pairs = [
        [pack(name, key, arrays), pack(f"{name}.{key}", entry, arrays)] for key, entry in value.items()
    ]
    return {_PAIRS: pairs}


def unpack(value: Any, arrays: Mapping[str, Any], depth: int = 0) -> Any:
    """Return the value that ``pack`` wrote; refuse what it would not have written."""
    if depth > DEEPEST:
        raise ModelFileError(
            f"The file must hold values nested at most {DEEPEST} deep, got deeper ones."
        )
    if isinstance(value, list):
        return [unpack(entry, arrays, depth + 1) for entry in value]
    if not isinstance(value, dict):
        return value
    try:
        return _unpacked(value, arrays, depth + 1)
    except ModelFileError:
        raise
    except (KeyError, TypeError, ValueError, AttributeError, IndexError) as error:
        raise ModelFileError(f"The file holds a value that is not allowed: {error}") from error


def _unpacked(value: dict[str, Any], arrays: Mapping[str, Any], depth: int) -> Any:
    keys = set(value)
    if keys == {_ARRAY}:
        return arrays[value[_ARRAY]]
    if keys == {_FLOAT}:
        if value[_FLOAT] not in ("inf", "-inf", "nan"):
            raise ModelFileError(f"The file must hold numbers, got {value[_FLOAT]!r}.")
        return float(value[_FLOAT])
    if keys == {_TUPLE} and isinstance(value[_TUPLE], list):
        return tuple(unpack(entry, arrays, depth) for entry in value[_TUPLE])
    if keys == {_PAIRS}:
        pairs = value[_PAIRS]
        return {unpack(key, arrays, depth): unpack(entry, arrays, depth) for key, entry in pairs}
    if keys == {_CLASS, "fields"}:
        name = value[_CLASS]
        if name not in _CLASSES:
            raise ModelFileError(
                f"The file must name registered classes, got {name!r}: import the module that "
                "registers it, or upgrade Surefoot."
            )
        fields = {key: unpack(entry, arrays, depth) for key, entry in value["fields"].items()}
        return _CLASSES[name](**fields)
    if not keys.isdisjoint(_MARKS):
        raise ModelFileError(f"The file must hold values as they are written, got the keys {keys}.")
    return {key: unpack(entry, arrays, depth) for key, entry in value.items()}
