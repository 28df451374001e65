"""JAX, loaded when it is needed, and checks of the functions that users write for it."""

import importlib
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from surefoot.exceptions import InvalidInputError, InvalidTypeError, MissingExtraError

# JAX keeps what took this long to compile unless told otherwise; our pieces are smaller and many.
JAX_DEFAULT_SECONDS, KEPT_SECONDS = 1.0, 0.2


def load_extra(module: str, message: str) -> Any:
    """Return a module of an optional package, or say what to install.

    >>> load_extra("json", "never said").__name__
    'json'
    """
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise MissingExtraError(message) from error


def load_jax(what: str) -> Any:
    """Return the module ``jax``, or say which command installs it.

    Parameters
    ----------
    what
        What needs it, as the start of the sentence: "CustomCost needs JAX: run ...".
    """
    return load_extra("jax", f'{what} needs JAX: run pip install "surefoot[jax]".')


def load_arrow(module: str) -> Any:
    """Return a module of pyarrow, which reads and writes Parquet, or say which command installs it.

    >>> load_arrow("pyarrow.parquet").__name__
    'pyarrow.parquet'
    """
    return load_extra(module, 'Parquet files need pyarrow: run pip install "surefoot[panels]".')


def keep_compiled(jax: Any) -> None:
    """Let JAX keep compiled code between processes, unless the user has decided about that.

    A neural policy takes seconds to compile and a fraction of one to load. The place is
    ``$SUREFOOT_CACHE``, or ``surefoot`` in the user's cache folder; ``off`` leaves JAX alone.
    """
    place = os.environ.get("SUREFOOT_CACHE", "")
    if place == "off" or jax.config.jax_compilation_cache_dir is not None:
        return
    home = os.environ.get("XDG_CACHE_HOME", "") or str(Path.home() / ".cache")
    folder = Path(place or Path(home) / "surefoot") / f"jax-{jax.__version__}"
    jax.config.update("jax_compilation_cache_dir", str(folder))
    if jax.config.jax_persistent_cache_min_compile_time_secs == JAX_DEFAULT_SECONDS:
        jax.config.update("jax_persistent_cache_min_compile_time_secs", KEPT_SECONDS)


def check_function(
    name: str,
    fn: Callable[..., Any],
    shapes: Sequence[tuple[int, ...]],
    returns: tuple[int, ...],
    meaning: str,
) -> None:
    """Refuse a function that JAX cannot trace, that has the wrong shape or no useful derivative.

    Parameters
    ----------
    name
        How the user calls it, for example ``fn(z, y)``.
    fn
        The function, of arrays with the given shapes.
    shapes
        Shapes of its arguments; the derivative in the first one is tried.
    returns
        The shape that it must return.
    meaning
        What that shape stands for, for the message.
    """
    jax = load_jax("A function of your own")
    rng = np.random.default_rng(0)
    with jax.enable_x64(True):
        points = [jax.numpy.asarray(rng.uniform(0.5, 1.5, size=shape)) for shape in shapes]
        _check_returns(jax, name, fn, points, returns, meaning)
        compiled = _compiled_derivative(jax, name, fn, points)
        value, slopes = (np.asarray(part) for part in compiled(*points))
        if not np.isfinite(value):
            raise InvalidInputError(f"{name} must be finite at ordinary numbers, got {value}.")
        if not np.isfinite(slopes).all():
            raise InvalidInputError(
                f"{name} must have a finite derivative in its first argument, got {slopes}."
            )
        # A kinked cost may be flat at one place; one that is flat everywhere cannot be learned.
        others = [
            np.asarray(compiled(*(rng.uniform(0.1, 3.0, size=shape) for shape in shapes))[1])
            for _ in range(8)
        ]
    if not any((np.nan_to_num(slope) != 0.0).any() for slope in [slopes, *others]):
        raise InvalidInputError(
            f"{name} must depend on its first argument in a way that has a derivative, got a "
            "derivative of zero (rounding, comparisons and counts have none)."
        )


def _check_returns(
    jax: Any,
    name: str,
    fn: Callable[..., Any],
    points: Sequence[Any],
    returns: tuple[int, ...],
    meaning: str,
) -> None:
    """Refuse a function that cannot be traced, or that returns something else than it should."""
    try:
        shaped = jax.eval_shape(fn, *points)
    except Exception as error:  # whatever the user's own code raises is quoted to them
        raise InvalidInputError(
            f"{name} must be a function that JAX can trace (jax.numpy, no Python 'if' on "
            f"values, no NumPy conversions), got {type(error).__name__}: {_first_line(error)}"
        ) from error
    if not isinstance(shaped, jax.ShapeDtypeStruct):
        raise InvalidTypeError(f"{name} must return {meaning}, got {type(shaped).__name__}.")
    if shaped.shape != returns and not (returns == () and shaped.shape == (1,)):
        raise InvalidInputError(
            f"{name} must return {meaning} (shape {returns}), got shape {shaped.shape}."
        )
    if np.issubdtype(shaped.dtype, np.complexfloating):
        raise InvalidInputError(f"{name} must return {meaning}, got a complex one.")


def _compiled_derivative(jax: Any, name: str, fn: Callable[..., Any], points: Sequence[Any]) -> Any:
    """Return the function's value and derivative in its first argument, compiled."""

    def total(*arguments: Any) -> Any:
        # Counts are whole numbers, of which JAX would not even take the derivative.
        return jax.numpy.sum(jax.numpy.asarray(fn(*arguments), dtype=float))

    try:
        return jax.jit(jax.value_and_grad(total)).lower(*points).compile()
    except Exception as error:  # a loop of unknown length, for example
        raise InvalidInputError(
            f"{name} must be a function that JAX can differentiate, got "
            f"{type(error).__name__}: {_first_line(error)}"
        ) from error


def _first_line(error: Exception) -> str:
    lines = str(error).strip().splitlines()
    return lines[0] if lines else "no message"
