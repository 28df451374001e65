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
from typing import Any, BinaryIO, NamedTuple

import numpy as np

from surefoot.exceptions import ModelFileError
from surefoot.version import __version__

FORMAT = "surefoot-model"
FORMAT_VERSION = 2
_HEADER, _DIGEST = "model.json", "sha256"
# What the first bytes of a zip file say.
_ZIP = b"PK"
# What a damaged zip file raises depends on which of its bytes were hit.
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
# A whole file may be this large, or so many times as large as it is on the disk: a small file of
# somebody else's then never takes much memory before it is refused.
SMALL_FILE, MOST_FILE_GROWTH = 2**25, 10
# Every value of a header takes up to a hundred bytes when it is read, however few it has in the text.
LARGEST_HEADER, MOST_VALUES = 2**23, 400_000
# Members are read in pieces: what a member says of its size is no limit to what it unpacks to at once.
READ_PIECE = 2**18
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
        reason = error.strerror or error  # the whole text names a file that is no more
        raise ModelFileError(f"The model file cannot be written to {path}: {reason}.") from error
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
    reason = _too_large_header(text)
    if reason is not None:
        raise ModelFileError(f"The model file cannot be written: its header {reason}.")
    parts = {_HEADER: text, _DIGEST: hashlib.sha256(text).hexdigest().encode()} | members
    _write_members(file, parts, {name: _packing(data) for name, data in members.items()})
    if sum(map(len, parts.values())) > max(SMALL_FILE, MOST_FILE_GROWTH * file.tell()):
        _write_members(file, parts, dict.fromkeys(members, zipfile.ZIP_STORED))


def _write_members(file: BinaryIO, parts: dict[str, bytes], packing: dict[str, int]) -> None:
    """Write all parts anew; those without a way of packing of their own are deflated."""
    file.seek(0)
    file.truncate()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED, compresslevel=LEVEL) as archive:
        for name, data in parts.items():
            archive.writestr(name, data, compress_type=packing.get(name))


def _too_large_header(text: bytes | bytearray) -> str | None:
    """Say why a header is too large to be read, or None."""
    if len(text) > LARGEST_HEADER:
        return f"must have at most {LARGEST_HEADER:,} bytes, got {len(text):,}"
    values = text.count(b",") + text.count(b"[") + text.count(b"{")
    if values > MOST_VALUES:
        return f"must have at most {MOST_VALUES:,} values, got about {values:,}"
    return None


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
    if path.is_dir():
        raise ModelFileError(f"The model must be a file, got the folder {str(path)!r}.")
    if not path.is_file():
        raise ModelFileError(f"There is no model file at {path}.")
    try:
        file = path.open("rb")
    except OSError as error:
        raise ModelFileError(f"{path} cannot be read: {error.strerror or error}.") from error
    with file:
        return _read(file, path)


def read_archive_bytes(data: bytes, name: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Read and check what ``archive_bytes`` returned; messages call it by ``name``."""
    return _read(io.BytesIO(data), name)


def _read(file: BinaryIO, path: str | Path) -> tuple[dict[str, Any], dict[str, Any]]:
    """Read and check an open file, which messages call ``path``."""
    try:
        if not _ZIP.startswith(file.read(len(_ZIP))):  # less of it is a damaged file
            raise ModelFileError(f"{path} must be a Surefoot model, got another kind of file.")
        size = file.seek(0, os.SEEK_END)
        with zipfile.ZipFile(file) as archive:
            infos = {info.filename: info for info in archive.infolist()}
            _refuse_growth(path, size, list(infos.values()), len(archive.infolist()))
            if not {_HEADER, _DIGEST} <= set(infos):
                raise ModelFileError(f"{path} must be a Surefoot model, got another kind of zip file.")
            header = _read_header(
                path, *(_content(archive, infos[name]) for name in (_HEADER, _DIGEST))
            )
            expected = header.get("arrays")
            if not isinstance(expected, dict) or set(expected) != set(infos) - {_HEADER, _DIGEST}:
                raise ModelFileError(f"{path} was changed after it was saved: its arrays differ.")
            # What each array says of itself is checked against its size before any is unpacked.
            kinds = {name: _array_kind(path, archive, infos[name]) for name in expected}
            arrays = {
                name.removesuffix(".npy"): _read_array(
                    path, name, _content(archive, infos[name]), digest, kinds[name]
                )
                for name, digest in expected.items()
            }
    except _DAMAGE as error:
        reason = str(error) or "it ends too early"
        raise ModelFileError(
            f"{path} must be a Surefoot model, got a damaged file or another format ({reason})."
        ) from error
    return header, arrays


def _refuse_growth(path: str | Path, size: int, infos: list[zipfile.ZipInfo], count: int) -> None:
    """Refuse a file that would grow beyond measure, before anything of it is read."""
    if count != len(infos):
        raise ModelFileError(f"{path} must hold every member once, got one twice.")
    if sum(info.compress_size for info in infos) > size:
        raise ModelFileError(f"{path} must hold what it says it holds, got less.")
    for info in infos:
        if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            raise ModelFileError(f"{path} must hold stored or deflated members, got another kind.")
        if info.file_size > max(SMALL_MEMBER, MOST_GROWTH * info.compress_size):
            raise ModelFileError(
                f"{path} must hold members that grow at most {MOST_GROWTH} times on reading, got "
                f"{info.filename} with {info.file_size:,} bytes from {info.compress_size:,}."
            )
    total, most = sum(info.file_size for info in infos), MOST_FILE_GROWTH * size
    if total > min(LARGEST_FILE, max(SMALL_FILE, most)):
        allowed = min(LARGEST_FILE, max(SMALL_FILE, most))
        raise ModelFileError(f"{path} must hold at most {allowed:,} bytes, got {total:,}.")
    for info in infos:
        if info.filename in (_HEADER, _DIGEST) and info.file_size > LARGEST_HEADER:
            raise ModelFileError(
                f"{path} must have a header of at most {LARGEST_HEADER:,} bytes, got "
                f"{info.file_size:,}."
            )


def _content(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> bytearray:
    """Return what a member holds, which is never more than it says it holds."""
    content = bytearray()
    with archive.open(info) as member:
        while piece := member.read(READ_PIECE):
            content += piece
    return content


def _read_header(path: str | Path, text: bytearray, digest: bytearray) -> dict[str, Any]:
    reason = _too_large_header(text)
    if reason is not None:
        raise ModelFileError(f"{path} is no model of ours: its header {reason}.")
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


class _ArrayKind(NamedTuple):
    """What the first bytes of an array say: its shape, its numbers, and where those begin."""

    shape: tuple[int, ...]
    fortran: bool
    dtype: Any
    begin: int


def _array_kind(path: str | Path, archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> _ArrayKind:
    """Read the first bytes of an array, and refuse what does not fit the size of its member."""
    try:
        with archive.open(info) as member:
            version = np.lib.format.read_magic(member)
            if version != (1, 0):
                raise ValueError(f"format {version} of an array")
            shape, fortran, dtype = np.lib.format.read_array_header_1_0(member)
            begin = member.tell()
        size = info.file_size - begin
        if (
            dtype.hasobject
            or dtype.itemsize == 0
            or int(np.prod(shape, dtype=object)) * dtype.itemsize != size
        ):
            raise ValueError(f"a shape of {shape} for {size} bytes of {dtype}")
    except _UNREADABLE as error:
        raise ModelFileError(f"{path} holds an unreadable array {info.filename}: {error}.") from error
    return _ArrayKind(shape, fortran, dtype, begin)


def _read_array(path: str | Path, name: str, data: bytearray, digest: Any, kind: _ArrayKind) -> Any:
    if hashlib.sha256(data).hexdigest() != digest:
        raise ModelFileError(f"{path} was changed after it was saved: {name} does not match.")
    try:
        values = np.frombuffer(data, kind.dtype, offset=kind.begin)
        array = values.reshape(kind.shape, order="F" if kind.fortran else "C")
        # Compiled code asks for aligned numbers, which the bytes of a file need not be.
        return np.require(array, requirements="A")
    except _UNREADABLE as error:
        raise ModelFileError(f"{path} holds an unreadable array {name}: {error}.") from error
