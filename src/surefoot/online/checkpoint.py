"""A policy's state in a file: JSON and plain arrays with checksums, whole or not at all.

The file is a Surefoot model file (``estimators.persistence``) whose header names ``OnlinePolicy``.
Nothing in it can run code.
"""

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from surefoot.estimators.persistence import read_file, write_file
from surefoot.exceptions import ModelFileError
from surefoot.typing import FloatArray

_KIND = "OnlinePolicy"
# What JSON cannot say is an object with one of these marks.
_ARRAY, _FLOAT, _TUPLE, _PAIRS = "__array__", "__float__", "__tuple__", "__pairs__"


def save_state(path: str | Path, state: Mapping[str, Any], **position: Any) -> None:
    """Write a ``state_dict`` and where the stream stands, together; an older file is replaced.

    A process that is killed while it writes leaves the older file as it was.

    Parameters
    ----------
    path
        The file.
    state
        What ``policy.state_dict()`` returned.
    position
        Anything that JSON can hold: line numbers, offsets, names.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import numpy as np
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "stream.checkpoint"
    >>> save_state(path, {"theta": np.array([0.1, 0.2]), "steps": 7}, line=12)
    >>> load_state(path)
    ({'theta': array([0.1, 0.2]), 'steps': 7}, {'line': 12})
    """
    arrays: dict[str, FloatArray] = {}
    header = {
        "estimator": _KIND,
        "state": _packed("state", dict(state), arrays),
        "position": _packed("position", position, arrays),
    }
    write_file(path, header, arrays)


def load_state(path: str | Path) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the state and the position that ``save_state`` wrote, to the last bit.

    A file that is damaged, of another program or of another kind gets a ``ModelFileError``.
    """
    header, arrays = read_file(path)
    kind = header.get("estimator")
    if kind != _KIND:
        raise ModelFileError(f"{path} must be a checkpoint of {_KIND}, got a model of {kind}.")
    try:
        state, position = (_unpacked(header[part], arrays) for part in ("state", "position"))
    except (KeyError, TypeError, ValueError) as error:
        raise ModelFileError(f"{path} lacks a part that it must have: {error}.") from error
    if not isinstance(state, dict) or not isinstance(position, dict):
        raise ModelFileError(f"{path} must hold a state and a position, got other data.")
    return state, position


def _packed(name: str, value: Any, arrays: dict[str, FloatArray]) -> Any:
    """Return a value as JSON; arrays go into ``arrays`` and leave their name."""
    if isinstance(value, np.ndarray):
        if value.dtype.hasobject:
            raise ModelFileError(f"{name} must be an array of numbers or text, got objects.")
        key = f"array_{len(arrays)}"
        arrays[key] = value
        return {_ARRAY: key}
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return {_FLOAT: repr(value)}
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, list):
        return [_packed(name, entry, arrays) for entry in value]
    if isinstance(value, tuple):
        return {_TUPLE: [_packed(name, entry, arrays) for entry in value]}
    if isinstance(value, Mapping):
        return _packed_mapping(name, value, arrays)
    raise ModelFileError(
        f"{name} must be made of numbers, text, arrays, lists and dictionaries, got {value!r}."
    )


def _packed_mapping(name: str, value: Mapping[Any, Any], arrays: dict[str, FloatArray]) -> Any:
    marks = (_ARRAY, _FLOAT, _TUPLE, _PAIRS)
    if all(isinstance(key, str) and key not in marks for key in value):
        return {key: _packed(f"{name}.{key}", entry, arrays) for key, entry in value.items()}
    # JSON would turn a whole number as key into text.
    pairs = [
        [_packed(name, key, arrays), _packed(f"{name}.{key}", entry, arrays)]
        for key, entry in value.items()
    ]
    return {_PAIRS: pairs}


def _unpacked(value: Any, arrays: dict[str, FloatArray]) -> Any:
    if isinstance(value, list):
        return [_unpacked(entry, arrays) for entry in value]
    if not isinstance(value, dict):
        return value
    if set(value) == {_ARRAY}:
        return arrays[value[_ARRAY]]
    if set(value) == {_FLOAT}:
        return float(value[_FLOAT])
    if set(value) == {_TUPLE}:
        return tuple(_unpacked(entry, arrays) for entry in value[_TUPLE])
    if set(value) == {_PAIRS}:
        return {_unpacked(key, arrays): _unpacked(entry, arrays) for key, entry in value[_PAIRS]}
    return {key: _unpacked(entry, arrays) for key, entry in value.items()}
