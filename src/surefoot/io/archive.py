"""Files of JSON and plain arrays, with checksums, whole or not at all. Nothing in them can run code.

Checksums find damage and careless edits. They are no signature: who can write the file can write
matching checksums, so every value is checked again by whoever makes something of it.

Arrays of the same numbers lie one after the other in one member of the zip file: a member takes as long
to write as ten thousand numbers, and a model has dozens of arrays. The header says which arrays there
are, in their order. Whole numbers have as few bytes as they need; nothing else of an array is packed,
which took longer than all the rest. Files of version 2 have a member for each array, some deflated.
"""

import hashlib
import io
import json
import math
import os
import tokenize
import zipfile
import zlib
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import numpy as np

from surefoot.exceptions import ModelFileError
from surefoot.io.writing import whole
from surefoot.validation import check_path
from surefoot.version import __version__

FORMAT = "surefoot-model"
FORMAT_VERSION, READ_VERSIONS = 3, (2, 3)
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
# Whole numbers, which may have fewer bytes in a file.
_WHOLE = ("|i1", "<i2", "<i4", "<i8", "|u1", "<u2", "<u4", "<u8")
# A member may be this large, or so many times as large as it is in the file: arrays of equal numbers
# shrink a lot, but nothing of ours grows a thousand times on reading. All together have a limit, too.
SMALL_MEMBER, MOST_GROWTH, LARGEST_FILE = 2**20, 200, 2**31
# A whole file may be this large, or so many times as large as it is on the disk: a small file of
# somebody else's then never takes much memory before it is refused.
SMALL_FILE, MOST_FILE_GROWTH = 2**25, 10
# Every value of a header takes up to a hundred bytes when it is read, however few it has in the text.
LARGEST_HEADER, MOST_VALUES = 2**23, 400_000
MOST_DIMENSIONS = 32  # of an array
# Members are read in pieces: what a member says of its size is no limit to what it unpacks to at once.
READ_PIECE = 2**18
# More effort makes headers a few per cent smaller and takes twice as long.
LEVEL = 1


def write_archive(path: str | Path, header: dict[str, Any], arrays: dict[str, Any]) -> None:
    """Write header and arrays; the file appears whole or not at all."""
    path = check_path("path", path)
    try:
        with whole(path) as temporary, temporary.open("wb") as file:
            _write(file, header, arrays)
    except OSError as error:
        reason = error.strerror or error  # the whole text names a file that is no more
        raise ModelFileError(f"The model file cannot be written to {path}: {reason}.") from error


def archive_bytes(header: dict[str, Any], arrays: dict[str, Any]) -> bytes:
    """Return what ``write_archive`` would write."""
    file = io.BytesIO()
    _write(file, header, arrays)
    return file.getvalue()


def _write(file: BinaryIO, header: dict[str, Any], arrays: dict[str, Any]) -> None:
    groups: dict[tuple[Any, Any], dict[str, Any]] = {}
    for name, array in arrays.items():
        plain = np.asarray(array, order="C")
        small = _narrow(plain)
        groups.setdefault((small.dtype, plain.dtype), {})[name] = small
    members: dict[str, bytes] = {}
    listed = {}
    for (dtype, given), group in groups.items():
        buffer, name = io.BytesIO(), f"block_{len(members)}.npy"
        block = np.concatenate([array.ravel() for array in group.values()], dtype=dtype)
        np.lib.format.write_array(buffer, block, allow_pickle=False)
        members[name] = buffer.getvalue()
        listed[name] = {
            "sha256": hashlib.sha256(members[name]).hexdigest(),
            "kind": None if given == dtype else given.str,
            "holds": {key: list(array.shape) for key, array in group.items()},
        }
    header = {
        "format": FORMAT,
        "format_version": FORMAT_VERSION,
        "surefoot_version": __version__,
        **header,
        "arrays": listed,
    }
    text = json.dumps(header, allow_nan=False).encode()
    reason = _too_large_header(text)
    if reason is not None:
        raise ModelFileError(f"The model file cannot be written: its header {reason}.")
    # A large header might shrink so much that reading it would be refused.
    packing = zipfile.ZIP_DEFLATED if len(text) <= SMALL_MEMBER else zipfile.ZIP_STORED
    with zipfile.ZipFile(file, "w", compresslevel=LEVEL) as archive:
        archive.writestr(_HEADER, text, compress_type=packing)
        archive.writestr(_DIGEST, hashlib.sha256(text).hexdigest())
        for name, data in members.items():
            archive.writestr(name, data)


def _too_large_header(text: bytes | bytearray) -> str | None:
    """Say why a header is too large to be read, or None."""
    if len(text) > LARGEST_HEADER:
        return f"must have at most {LARGEST_HEADER:,} bytes, got {len(text):,}"
    values = text.count(b",") + text.count(b"[") + text.count(b"{")
    if values > MOST_VALUES:
        return f"must have at most {MOST_VALUES:,} values, got about {values:,}"
    return None


def _narrow(array: Any) -> Any:
    """Return whole numbers that are not negative in as few bytes as they need."""
    if array.dtype.str not in _WHOLE or array.size == 0 or array.min() < 0:
        return array
    return array.astype(np.min_scalar_type(array.max()), copy=False)


def read_archive(path: str | Path) -> tuple[dict[str, Any], dict[str, Any]]:
    """Read and check a file: kind, version, sizes and checksums."""
    path = check_path("path", path)
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
            blocks = _blocks(path, header, set(infos) - {_HEADER, _DIGEST})
            # What each member says of itself is checked against its size before any is unpacked.
            kinds = {name: _array_kind(path, archive, infos[name]) for name in blocks}
            for name, block in blocks.items():
                _check_shapes(path, name, block, kinds[name])
            wide = sum(blocks[name].wide(kind) for name, kind in kinds.items())
            _refuse_size(path, size, wide)
            arrays: dict[str, Any] = {}
            for name, block in blocks.items():
                content = _content(archive, infos[name])
                arrays |= _read_arrays(path, name, content, block, kinds[name])
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
    _refuse_size(path, size, sum(info.file_size for info in infos))
    for info in infos:
        if info.filename in (_HEADER, _DIGEST) and info.file_size > LARGEST_HEADER:
            raise ModelFileError(
                f"{path} must have a header of at most {LARGEST_HEADER:,} bytes, got "
                f"{info.file_size:,}."
            )


def _refuse_size(path: str | Path, size: int, total: int) -> None:
    """Refuse a file of a size that would take too many bytes in all."""
    allowed = min(LARGEST_FILE, max(SMALL_FILE, MOST_FILE_GROWTH * size))
    if total > allowed:
        raise ModelFileError(f"{path} must hold at most {allowed:,} bytes, got {total:,}.")


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
    if not isinstance(version, int) or version not in READ_VERSIONS:
        allowed = " or ".join(map(str, READ_VERSIONS))
        raise ModelFileError(
            f"{path} must have format version {allowed}, got {version} (written by Surefoot "
            f"{header.get('surefoot_version')}): fit and save again, or change the version of Surefoot."
        )
    if hashlib.sha256(text).hexdigest().encode() != digest:
        raise ModelFileError(f"{path} was changed after it was saved: its checksum does not match.")
    return header


class _Block(NamedTuple):
    """What the header says of a member: its checksum, its arrays, and what numbers they have.

    Shapes are None where the member is one array, which has its own; numbers are None where they are
    as they are in the file.
    """

    digest: Any
    shapes: dict[str, Any] | None = None
    numbers: Any = None

    def wide(self, kind: "_ArrayKind") -> int:
        """Return how many bytes the arrays take."""
        return math.prod(kind.shape) * int(np.dtype(self.numbers or kind.dtype).itemsize)


def _blocks(path: str | Path, header: dict[str, Any], members: set[str]) -> dict[str, _Block]:
    """Return what the header says of each member with arrays."""
    listed = header.get("arrays")
    if not isinstance(listed, dict) or set(listed) != members:
        raise ModelFileError(f"{path} was changed after it was saved: its arrays differ.")
    if header["format_version"] == READ_VERSIONS[0]:
        return {name: _Block(digest) for name, digest in listed.items()}
    try:
        blocks = {
            name: _Block(one["sha256"], dict(one["holds"]), one["kind"]) for name, one in listed.items()
        }
    except (KeyError, TypeError, ValueError) as error:
        raise ModelFileError(
            f"{path} must list its arrays and their shapes, got another kind of list."
        ) from error
    names = [key for block in blocks.values() for key in block.shapes or ()]
    if len(set(names)) < len(names):
        raise ModelFileError(f"{path} must hold every array once, got one twice.")
    return blocks


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


def _check_shapes(path: str | Path, name: str, block: _Block, kind: _ArrayKind) -> None:
    """Refuse arrays that do not fill their member, each number of which is of one array."""
    if block.shapes is None:
        return
    shapes = list(block.shapes.values())
    plain = all(
        isinstance(shape, list)
        and len(shape) <= MOST_DIMENSIONS
        and all(type(size) is int and 0 <= size <= LARGEST_FILE for size in shape)
        for shape in shapes
    )
    kept = block.numbers is None or (block.numbers in _WHOLE and kind.dtype.kind == "u")
    if not plain or not kept or kind.shape != (sum(map(math.prod, shapes)),):
        raise ModelFileError(
            f"{path} holds an unreadable array {name}: its numbers, of shape {kind.shape}, are not "
            "those of the arrays listed."
        )


def _read_arrays(
    path: str | Path, name: str, data: bytearray, block: _Block, kind: _ArrayKind
) -> dict[str, Any]:
    """Return the arrays of a member."""
    if hashlib.sha256(data).hexdigest() != block.digest:
        raise ModelFileError(f"{path} was changed after it was saved: {name} does not match.")
    try:
        # Compiled code asks for aligned numbers, which the bytes of a file need not be.
        numbers = np.require(
            np.frombuffer(data, kind.dtype, offset=kind.begin), block.numbers or kind.dtype, "A"
        )
        order: Any = "F" if kind.fortran else "C"
        arrays, begin = {}, 0
        shapes = {name.removesuffix(".npy"): kind.shape} if block.shapes is None else block.shapes
        for key, shape in shapes.items():
            end = begin + math.prod(shape)
            arrays[key], begin = numbers[begin:end].reshape(shape, order=order), end
        return arrays
    except _UNREADABLE as error:
        raise ModelFileError(f"{path} holds an unreadable array {name}: {error}.") from error
