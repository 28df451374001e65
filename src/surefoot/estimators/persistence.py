"""Model files: a zip of JSON and plain arrays, with checksums. Nothing in them can run code.

Checksums find damage and careless edits. They are no signature: who can write the file can write
matching checksums, so take models only from where you would take data.
"""

import contextlib
import dataclasses
import hashlib
import io
import json
import math
import os
import zipfile
import zlib
from pathlib import Path
from typing import Any

import numpy as np

from surefoot.ambiguity import WassersteinBall
from surefoot.costs import MeanCVaR, Newsvendor, Pricing, Quadratic
from surefoot.exceptions import ModelFileError
from surefoot.forecasts import Forecaster
from surefoot.policies import ELU, MLP, Linear, MaxAffine, Polynomial, RandomFourier, Sigmoid
from surefoot.sets import Box, Budget, Simplex
from surefoot.solvers import DASGD, SGD, Adam, ConvexProgram, Exact, LiteralDASGD
from surefoot.typing import FloatArray
from surefoot.version import __version__

FORMAT = "surefoot-model"
FORMAT_VERSION = 1
_HEADER, _DIGEST = "model.json", "sha256"
# What a damaged zip file raises depends on which of its bytes were hit.
_DAMAGE = (zipfile.BadZipFile, zlib.error, EOFError, RuntimeError, OSError)
# The only classes that a file can name.
_CLASSES = {
    cls.__name__: cls
    for cls in (
        Box,
        Simplex,
        Budget,
        WassersteinBall,
        Newsvendor,
        Quadratic,
        MeanCVaR,
        Pricing,
        Linear,
        MaxAffine,
        Sigmoid,
        ELU,
        MLP,
        Polynomial,
        RandomFourier,
        DASGD,
        ConvexProgram,
        Exact,
        LiteralDASGD,
        Adam,
        SGD,
        Forecaster,
    )
}


def encode(name: str, value: Any) -> Any:
    """Return a constructor's parameter as JSON; refuse what JSON cannot hold."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, np.ndarray):
        value = tuple(value.tolist())
    if isinstance(value, float) and not math.isfinite(value):
        return {"float": repr(value)}
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, tuple | list):
        return [encode(name, entry) for entry in value]
    if type(value).__name__ in _CLASSES and type(value) is _CLASSES[type(value).__name__]:
        fields = {f.name: encode(f.name, getattr(value, f.name)) for f in dataclasses.fields(value)}
        return {"class": type(value).__name__, "fields": fields}
    raise ModelFileError(
        f"{name} must be made of numbers, text and Surefoot's own classes to be saved, got {value!r}."
    )


def decode(value: Any) -> Any:
    """Return the parameter that ``encode`` wrote."""
    if isinstance(value, list):
        return tuple(decode(entry) for entry in value)
    if not isinstance(value, dict):
        return value
    if set(value) == {"float"} and value["float"] in ("inf", "-inf", "nan"):
        return float(value["float"])
    if set(value) == {"class", "fields"} and value["class"] in _CLASSES:
        fields = {name: decode(entry) for name, entry in value["fields"].items()}
        return _CLASSES[value["class"]](**fields)
    raise ModelFileError(f"The model file must hold Surefoot's own classes, got {value!r}.")


def write_file(path: str | Path, header: dict[str, Any], arrays: dict[str, FloatArray]) -> None:
    """Write header and arrays; the file appears whole or not at all."""
    path = Path(path)
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
    text = json.dumps(header, indent=1, allow_nan=False).encode()
    temporary = path.with_name(f"{path.name}.{os.getpid()}.part")
    try:
        with zipfile.ZipFile(temporary, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr(_HEADER, text)
            archive.writestr(_DIGEST, hashlib.sha256(text).hexdigest())
            for name, data in members.items():
                archive.writestr(name, data)
        temporary.replace(path)
    except OSError as error:
        with contextlib.suppress(OSError):  # there may be no such place at all
            temporary.unlink(missing_ok=True)
        raise ModelFileError(f"The model file cannot be written to {path}: {error}.") from error


def read_file(path: str | Path) -> tuple[dict[str, Any], dict[str, FloatArray]]:
    """Read and check a model file."""
    path = Path(path)
    if not path.is_file():
        raise ModelFileError(f"There is no model file at {path}.")
    try:
        with zipfile.ZipFile(path) as archive:
            names = set(archive.namelist())
            if not {_HEADER, _DIGEST} <= names:
                raise ModelFileError(f"{path} must be a Surefoot model, got another kind of zip file.")
            text = archive.read(_HEADER)
            header = _read_header(path, text, archive.read(_DIGEST))
            expected = header.get("arrays")
            if not isinstance(expected, dict) or set(expected) != names - {_HEADER, _DIGEST}:
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


def _read_header(path: Path, text: bytes, digest: bytes) -> dict[str, Any]:
    try:
        header = json.loads(text)
    except ValueError as error:
        raise ModelFileError(f"{path} was changed after it was saved: {error}.") from error
    if not isinstance(header, dict) or header.get("format") != FORMAT:
        raise ModelFileError(f"{path} must be a Surefoot model, got another kind of zip file.")
    version = header.get("format_version")
    if not isinstance(version, int) or version > FORMAT_VERSION:
        raise ModelFileError(
            f"{path} must have format version <= {FORMAT_VERSION}, got {version} (written by "
            f"Surefoot {header.get('surefoot_version')}): upgrade Surefoot."
        )
    if hashlib.sha256(text).hexdigest().encode() != digest:
        raise ModelFileError(f"{path} was changed after it was saved: its checksum does not match.")
    return header


def _read_array(path: Path, name: str, data: bytes, digest: str) -> FloatArray:
    if hashlib.sha256(data).hexdigest() != digest:
        raise ModelFileError(f"{path} was changed after it was saved: {name} does not match.")
    try:
        return np.asarray(np.lib.format.read_array(io.BytesIO(data), allow_pickle=False))
    except ValueError as error:
        raise ModelFileError(f"{path} holds an unreadable array {name}: {error}.") from error
