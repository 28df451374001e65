"""A policy's state in a file: JSON and plain arrays with checksums, whole or not at all.

The file is a Surefoot archive (``surefoot.io``) whose header names ``OnlinePolicy``. Nothing in it can
run code.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from surefoot.exceptions import ModelFileError
from surefoot.io import pack, read_archive, unpack, write_archive

_KIND = "OnlinePolicy"


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
    arrays: dict[str, Any] = {}
    header = {
        "estimator": _KIND,
        "state": pack("state", dict(state), arrays),
        "position": pack("position", position, arrays),
    }
    write_archive(path, header, arrays)


def load_state(path: str | Path) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the state and the position that ``save_state`` wrote, to the last bit.

    A file that is damaged, of another program or of another kind gets a ``ModelFileError``.
    """
    header, arrays = read_archive(path)
    kind = header.get("estimator")
    if kind != _KIND:
        raise ModelFileError(f"{path} must be a checkpoint of {_KIND}, got a model of {kind}.")
    try:
        state, position = (unpack(header[part], arrays) for part in ("state", "position"))
    except KeyError as error:
        raise ModelFileError(f"{path} lacks a part that it must have: {error}.") from error
    if not isinstance(state, dict) or not isinstance(position, dict):
        raise ModelFileError(f"{path} must hold a state and a position, got other data.")
    return state, position
