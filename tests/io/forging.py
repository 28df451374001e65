"""Write model files by hand: members changed, every checksum made to match."""

import hashlib
import io
import json
import signal
import zipfile
from contextlib import contextmanager

import numpy as np
import pytest

from surefoot.exceptions import ModelFileError


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


def forge(path, parts, compression=zipfile.ZIP_STORED, **changes):
    """Write parts with the header changed and every checksum made to match."""
    header = json.loads(parts["model.json"]) | changes
    header["arrays"] = {
        name: hashlib.sha256(data).hexdigest()
        for name, data in parts.items()
        if name not in ("model.json", "sha256")
    }
    text = json.dumps(header).encode()
    digest = hashlib.sha256(text).hexdigest().encode()
    rewrite(path, {**parts, "model.json": text, "sha256": digest}, compression)


def edit(path, change):
    """Apply ``change(header, arrays)`` to a file's header and arrays, and make checksums match."""
    parts = members(path)
    header = json.loads(parts["model.json"])
    arrays = {
        name.removesuffix(".npy"): np.load(io.BytesIO(data), allow_pickle=False)
        for name, data in parts.items()
        if name.endswith(".npy")
    }
    change(header, arrays)
    kept = {"model.json": json.dumps(header), "sha256": b""}
    forge(path, kept | {f"{name}.npy": npy(array) for name, array in arrays.items()})


@contextmanager
def within(seconds):
    """Stop what takes more processor time, even a loop without end."""

    def late(*_):
        raise TimeoutError(f"took more than {seconds} s")

    before = signal.signal(signal.SIGPROF, late)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


def refused(read, path, message=None):
    """Check that a file is refused with a ``ModelFileError`` within a second; return what it says."""
    with within(1.0), pytest.raises(ModelFileError, match=message) as caught:
        read(path)
    return str(caught.value)
