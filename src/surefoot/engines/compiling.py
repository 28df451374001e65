"""Compile kernels and cache them on disk, under a name that changes with any line of any kernel.

Numba's own cache looks only at the file that defines a kernel. A kernel that calls a function or uses a
constant of another file would go on running the old one after an edit or an upgrade.
"""

import hashlib
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from numba import config, njit

from surefoot.typing import FloatArray
from surefoot.version import __version__

_FOLDER = Path(__file__).parent


def _digest() -> str:
    """Fingerprint of the version and of every source file of the engines."""
    seen = hashlib.sha256(__version__.encode())
    for path in sorted(_FOLDER.glob("*.py")):
        seen.update(path.read_bytes())
    return seen.hexdigest()[:16]


def _home() -> Path:
    """Where kernels are kept: NUMBA_CACHE_DIR, else beside the source, else the user's cache."""
    if config.CACHE_DIR:
        return Path(config.CACHE_DIR)
    if os.access(_FOLDER, os.W_OK):
        return _FOLDER / "__pycache__"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "surefoot"


CACHE = _home() / f"kernels-{_digest()}"


def kernel(
    *, fastmath: bool = False, reassociate: bool = False, inline: bool = False
) -> Callable[[Any], Any]:
    """Return a decorator that compiles a function for speed, without the interpreter lock.

    Parameters
    ----------
    fastmath
        Whether sums may be reordered, which lets them run in parallel lanes, and all numbers are
        taken to be finite.
    reassociate
        Whether sums may be reordered, and infinities (bounds that are not there) keep their meaning.
    inline
        Whether callers swallow the function whole.
    """

    def decorate(function: Any) -> Any:
        before, config.CACHE_DIR = config.CACHE_DIR, str(CACHE)
        try:
            how = "always" if inline else "never"
            flags: Any = {"reassoc", "contract"} if reassociate else fastmath
            return njit(cache=True, nogil=True, fastmath=flags, inline=how)(function)
        finally:
            config.CACHE_DIR = before

    return decorate


def as_compiled(array: FloatArray) -> FloatArray:
    """Return an array of the one kind that kernels are compiled for: writable, without gaps.

    For each other kind Numba would compile a kernel anew, which takes seconds where a copy takes none.
    """
    return array if array.flags.carray else array.copy()
