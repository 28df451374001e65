"""Array types and namespaces used in signatures."""

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

FloatArray: TypeAlias = NDArray[np.float64]
IntArray: TypeAlias = NDArray[np.int64]
BoolArray: TypeAlias = NDArray[np.bool_]

# ``numpy`` or ``jax.numpy``: formulas are written once against the namespace handed in.
ArrayNamespace: TypeAlias = Any

__all__ = ["ArrayLike", "ArrayNamespace", "BoolArray", "FloatArray", "IntArray"]
