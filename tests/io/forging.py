"""Write model files by hand: members changed, every checksum made to match."""

import hashlib
import io
import json
import signal
import sys
import zipfile
from contextlib import contextmanager

import numpy as np
import pytest

from surefoot.exceptions import ModelFileError
from surefoot.io import read_archive, write_archive


def members(path):
    """Return the content of a file by the names of its members."""
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def rewrite(path, parts, compression=zipfile.ZIP_STORED):
    """Write members as they are."""
    with zipfile.ZipFile(path, "w", compression) as archive:
        for name, data in parts.items():
            archive.writestr(name, data)


def npy(array):
    """Return the bytes of an array's file."""
    buffer = io.BytesIO()
    np.lib.format.write_array(buffer, np.asarray(array), allow_pickle=False)
    return buffer.getvalue()


def claimed(shape, dtype="<f8", data=b""):
    """Return an array's file whose header claims a shape."""
    buffer = io.BytesIO()
    header = {"descr": dtype, "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_1_0(buffer, header)
    return buffer.getvalue() + data


def write_version_2(path, header, arrays):
    """Write a file as former versions did: a member for each array, some deflated."""
    written = {"format": "surefoot-model", "format_version": 2, "surefoot_version": "0.9"} | header
    parts = {"model.json": json.dumps(written | {"arrays": {}}), "sha256": b""}
    forge(path, parts | {f"{name}.npy": npy(array) for name, array in arrays.items()})


def forge(path, parts, compression=zipfile.ZIP_STORED, **changes):
    """Write parts with the header changed and every checksum made to match."""
    header = json.loads(parts["model.json"])
    listed, old = header["arrays"], header["format_version"] == 2
    header |= changes
    header["arrays"] = {}
    for name in parts.keys() - {"model.json", "sha256"}:
        digest = hashlib.sha256(parts[name]).hexdigest()
        told = listed.get(name, {"kind": None, "holds": {}})
        header["arrays"][name] = digest if old else told | {"sha256": digest}
    text = json.dumps(header).encode()
    digest = hashlib.sha256(text).hexdigest().encode()
    rewrite(path, {**parts, "model.json": text, "sha256": digest}, compression)


def edit(path, change):
    """Apply ``change(header, arrays)`` to a file's header and arrays, and make checksums match."""
    header, arrays = read_archive(path)
    change(header, arrays)
    write_archive(path, header, arrays)


@contextmanager
def ending(seconds=60.0):
    """Stop a loop without end: a limit that no machine needs, not a measure of speed."""

    def late(*_):
        raise TimeoutError(f"took more than {seconds} s")

    before = signal.signal(signal.SIGPROF, late)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


@contextmanager
def calls():
    """Count the calls of Python and C functions: the same number on every machine."""
    count = 0

    def one_more(_frame, event, _function):
        nonlocal count
        count += event in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(one_more)
    try:
        yield lambda: count
    finally:
        sys.setprofile(before)


def refused(read, path, message=None):
    """Check that a file is refused with a ``ModelFileError``; return what it says."""
    with ending(), pytest.raises(ModelFileError, match=message) as caught:
        read(path)
    return str(caught.value)
