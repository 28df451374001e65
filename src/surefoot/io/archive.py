"""Files of JSON and plain arrays, with checksums, whole or not at all. Nothing in them can run code.

Checksums find damage and careless edits. They are no signature: who can write the file can write
matching checksums, so every value is checked again by whoever makes something of it.
"""

import contextlib
import hashlib
import io
import json
import os
import tokenize
import zipfile
import zlib
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from surefoot.exceptions import ModelFileError
from surefoot.version import __version__

FORMAT = "surefoot-model"
FORMAT_VERSION = 2
_HEADER, _DIGEST = "model.json", "sha256"
# What a damaged zip file raises depends on which of its bytes were hit.
# What the first bytes of a zip file say.
_ZIP = b"PK"
_DAMAGE = (
    zipfile.BadZipFile,
    zlib.error,
    EOFError,
    RuntimeError,
    OSError,
    NotImplementedError,
    UnicodeDecodeError,
)
_UNREADABLE = (ValueError, TypeError, OverflowError, SyntaxError, MemoryError, tokenize.TokenError)
# A member may be this large, or so many times as large as it is in the file: arrays of equal numbers
# shrink a lot, but nothing of ours grows a thousand times on reading. All together have a limit, too.
SMALL_MEMBER, MOST_GROWTH, LARGEST_FILE = 2**20, 200, 2**31
# More effort makes files a few per cent smaller and takes twice as long.
LEVEL = 1
# Members are packed if they are larger than this and a piece from their middle shrinks to this share:
# most of the time of packing went into numbers that do not shrink.
LEAST_PACKED, PIECE, WORTHWHILE = 2**10, 2**11, 0.8


def write_archive(path: str | Path, header: dict[str, Any], arrays: dict[str, Any]) -> None:
    """Write header and arrays; the file appears whole or not at all."""
    path = Path(path)
    temporary = path.with_name(f"{path.name}.{os.getpid()}.part")
    try:
        with temporary.open("wb") as file:
            _write(file, header, arrays)
        temporary.replace(path)
    except OSError as error:
        raise ModelFileError(f"The model file cannot be written to {path}: {error}.") from error
    finally:  # whatever ended it, Ctrl-C too, nothing half-written stays
        with contextlib.suppress(OSError):  # there may be no such place at all
            temporary.unlink(missing_ok=True)


def archive_bytes(header: dict[str, Any], arrays: dict[str, Any]) -> bytes:
    """Return what ``write_archive`` would write."""
    file = io.BytesIO()
    _write(file, header, arrays)
    return file.getvalue()


def _write(file: BinaryIO, header: dict[str, Any], arrays: dict[str, Any]) -> None:
    members: dict[str, bytes] = {}
    for name, array in arrays.items():
        buffer = io.BytesIO()
        np.lib.format.write_array(buffer, np.asarray(array, order="C"), allow_pickle=False)
        members[f"{name}.npy"] = buffer.getvalue()
    header = {
        "format": FORMAT,
        "format_version": FORMAT_VERSION,
        "surefoot_version": __version__,
        **header,
        "arrays": {name: hashlib.sha256(data).hexdigest() for name, data in members.items()},
    }
    text = json.dumps(header, allow_nan=False).encode()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED, compresslevel=LEVEL) as archive:
        archive.writestr(_HEADER, text)
        archive.writestr(_DIGEST, hashlib.sha256(text).hexdigest())
        for name, data in members.items():
            archive.writestr(name, data, compress_type=_packing(data))


def _packing(data: bytes) -> int:
    """Return how to pack a member: not if it would hardly shrink, or grow beyond measure on reading."""
    if len(data) < LEAST_PACKED:
        return zipfile.ZIP_STORED
    piece = data[len(data) // 2 :][:PIECE]
    shrinks = len(zlib.compress(piece, LEVEL)) <= WORTHWHILE * len(piece)
    large = len(data) > SMALL_MEMBER
    grows = shrinks and large and len(data) > MOST_GROWTH * len(zlib.compress(data)) // 2
    return zipfile.ZIP_DEFLATED if shrinks and not grows else zipfile.ZIP_STORED


def read_archive(path: str | Path) -> tuple[dict[str, Any], dict[str, Any]]:
    """Read and check a file: kind, version, sizes and checksums."""
    path = Path(path)
    if not path.is_file():
        raise ModelFileError(f"There is no model file at {path}.")
    try:
        with path.open("rb") as file:
            if not _ZIP.startswith(file.read(len(_ZIP))):  # less of it is a damaged file
                raise ModelFileError(f"{path} must be a Surefoot model, got another kind of file.")
        with zipfile.ZipFile(path) as archive:
            infos = {info.filename: info for info in archive.infolist()}
            _refuse_growth(path, list(infos.values()), len(archive.infolist()))
            if not {_HEADER, _DIGEST} <= set(infos):
                raise ModelFileError(f"{path} must be a Surefoot model, got another kind of zip file.")
            text = archive.read(_HEADER)
            header = _read_header(path, text, archive.read(_DIGEST))
            expected = header.get("arrays")
            if not isinstance(expected, dict) or set(expected) != set(infos) - {_HEADER, _DIGEST}:
                raise ModelFileError(f"{path} was changed after it was saved: its arrays differ.")
            arrays = {
                name.removesuffix(".npy"): _read_array(path, name, archive.read(name), digest)
                for name, digest in expected.items()
            }
    except _DAMAGE as error:
        reason = str(error) or "it ends too early"
        raise ModelFileError(
            f"{path} must be a Surefoot model, got a damaged file or another format ({reason})."
        ) from error
    return header, arrays


def _refuse_growth(path: Path, infos: list[zipfile.ZipInfo], count: int) -> None:
    """Refuse a file that would grow beyond measure, before anything of it is read."""
    if count != len(infos):
        raise ModelFileError(f"{path} must hold every member once, got one twice.")
    if sum(info.compress_size for info in infos) > path.stat().st_size:
        raise ModelFileError(f"{path} must hold what it says it holds, got less.")
    for info in infos:
        if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            raise ModelFileError(f"{path} must hold stored or deflated members, got another kind.")
        if info.file_size > max(SMALL_MEMBER, MOST_GROWTH * info.compress_size):
            raise ModelFileError(
                f"{path} must hold members that grow at most {MOST_GROWTH} times on reading, got "
                f"{info.filename} with {info.file_size:,} bytes from {info.compress_size:,}."
            )
    total = sum(info.file_size for info in infos)
    if total > LARGEST_FILE:
        raise ModelFileError(f"{path} must hold at most {LARGEST_FILE:,} bytes, got {total:,}.")


def _read_header(path: Path, text: bytes, digest: bytes) -> dict[str, Any]:
    try:
        header = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ModelFileError(f"{path} was changed after it was saved: {error}.") from error
    if not isinstance(header, dict) or header.get("format") != FORMAT:
        raise ModelFileError(f"{path} must be a Surefoot model, got another kind of zip file.")
    version = header.get("format_version")
    if not isinstance(version, int) or version != FORMAT_VERSION:
        raise ModelFileError(
            f"{path} must have format version {FORMAT_VERSION}, got {version} (written by Surefoot "
            f"{header.get('surefoot_version')}): fit and save again, or change the version of Surefoot."
        )
    if hashlib.sha256(text).hexdigest().encode() != digest:
        raise ModelFileError(f"{path} was changed after it was saved: its checksum does not match.")
    return header


def _read_array(path: Path, name: str, data: bytes, digest: Any) -> Any:
    if hashlib.sha256(data).hexdigest() != digest:
        raise ModelFileError(f"{path} was changed after it was saved: {name} does not match.")
    buffer = io.BytesIO(data)
    try:
        version = np.lib.format.read_magic(buffer)
        if version != (1, 0):
            raise ValueError(f"format {version} of an array")
        shape, _, dtype = np.lib.format.read_array_header_1_0(buffer)
        # An array that claims to be larger than its bytes would be made room for first.
        if (
            dtype.hasobject
            or dtype.itemsize == 0
            or int(np.prod(shape, dtype=object)) * dtype.itemsize != len(data) - buffer.tell()
        ):
            raise ValueError(f"a shape of {shape} for {len(data) - buffer.tell()} bytes of {dtype}")
        buffer.seek(0)
        return np.asarray(np.lib.format.read_array(buffer, allow_pickle=False))
    except _UNREADABLE as error:
        raise ModelFileError(f"{path} holds an unreadable array {name}: {error}.") from error
