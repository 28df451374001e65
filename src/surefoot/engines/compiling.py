"""Compile kernels and cache them on disk, under a name that changes with any line of any kernel.

Numba's own cache looks only at the file that defines a kernel. A kernel that calls a function or uses a
constant of another file would go on running the old one after an edit or an upgrade.
"""

import hashlib
import importlib
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache, cached_property, partial, update_wrapper
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any

from surefoot.typing import FloatArray
from surefoot.version import __version__

_FOLDER = Path(__file__).parent
_ONE_AT_A_TIME = threading.Lock()


def _digest() -> str:
    """Fingerprint of the version and of every source file of the engines."""
    seen = hashlib.sha256(__version__.encode())
    for path in sorted(_FOLDER.glob("*.py")):
        seen.update(path.read_bytes())
    return seen.hexdigest()[:16]


def _numba() -> Any:
    # Not at the top: it loads as long as scikit-learn, and who only decides mostly needs no kernel.
    return importlib.import_module("numba")


def _home() -> Path:
    """Where kernels are kept: NUMBA_CACHE_DIR, else beside the source, else the user's cache."""
    if told := _numba().config.CACHE_DIR:
        return Path(told)
    if os.access(_FOLDER, os.W_OK):
        return _FOLDER / "__pycache__"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "surefoot"


@cache
def kernel_folder() -> Path:
    """Return where kernels of this version are kept."""
    return _home() / f"kernels-{_digest()}"


class Kernel:
    """A function that is compiled, or read from the cache, when it is first called."""

    def __init__(self, function: Any, **options: Any) -> None:
        self._function, self._options = function, options
        update_wrapper(self, function)

    def __call__(self, *arguments: Any) -> Any:
        """Run the compiled function."""
        return self.compiled(*arguments)

    @property
    def loaded(self) -> bool:
        """Whether it has run in this process, so that it runs at once."""
        # Where Numba is switched off, kernels are plain functions without signatures.
        return "compiled" in vars(self) and bool(getattr(self.compiled, "signatures", True))

    @cached_property
    def compiled(self) -> Any:
        """What Numba makes of the function; it sees what Numba made of other kernels in their place."""
        function, known = self._function, self._function.__globals__
        callees = {name: known[name] for name in _names(function.__code__) if name in known}
        callees = {name: one.compiled for name, one in callees.items() if isinstance(one, Kernel)}
        resolved = FunctionType(
            function.__code__, {**known, **callees}, argdefs=function.__defaults__,
            closure=function.__closure__,
        )  # fmt: skip
        with _kept_in(kernel_folder()):
            make = _numba().njit(cache=True, nogil=True, **self._options)
            return make(update_wrapper(resolved, function))


@contextmanager
def _kept_in(folder: Path) -> Iterator[None]:
    """Set Numba's one setting for all kernels, which other threads must not see half-way."""
    config = _numba().config
    with _ONE_AT_A_TIME:
        before, config.CACHE_DIR = config.CACHE_DIR, str(folder)
        try:
            yield
        finally:
            config.CACHE_DIR = before


def _names(code: CodeType) -> Iterator[str]:
    """Give the names that a function looks up, in comprehensions within it too."""
    yield from code.co_names
    for part in code.co_consts:
        if isinstance(part, CodeType):
            yield from _names(part)


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
    flags: Any = {"reassoc", "contract"} if reassociate else fastmath
    return partial(Kernel, fastmath=flags, inline="always" if inline else "never")


def as_compiled(array: FloatArray) -> FloatArray:
    """Return an array of the one kind that kernels are compiled for: writable, without gaps.

    For each other kind Numba would compile a kernel anew, which takes seconds where a copy takes none.
    """
    return array if array.flags.carray else array.copy()
