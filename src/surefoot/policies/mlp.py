"""Neural policies."""

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from surefoot.exceptions import InvalidInputError
from surefoot.io import register
from surefoot.policies.activations import ACTIVATIONS
from surefoot.policies.base import Policy, Tree, standardised
from surefoot.typing import ArrayNamespace, FloatArray
from surefoot.validation import check_choice, check_integer

# The last layer starts this small, so that learning begins near the best constant decision.
LAST_LAYER = 0.1


@register
@dataclass(frozen=True)
class MLP(Policy):
    """A multilayer perceptron.

    Parameters
    ----------
    hidden
        Widths of the hidden layers.
    activation
        "elu" (smooth, as the paper's theory wants it), "relu", "tanh" or "softplus".

    Examples
    --------
    >>> import numpy as np
    >>> policy = MLP(hidden=(8, 8))
    >>> trained = policy.initial(np.random.default_rng(0), n_columns=3, n_decisions=2)
    >>> [trained[name].shape for name in sorted(trained)]
    [(8,), (8,), (2,), (3, 8), (8, 8), (8, 2)]
    """

    hidden: Sequence[int] = (64, 64)
    activation: str = "elu"

    def __post_init__(self) -> None:
        given: Any = self.hidden
        widths = tuple(given) if isinstance(given, Iterable) and not isinstance(given, str) else ()
        if len(widths) == 0:
            raise InvalidInputError(
                f"hidden must be the widths of the hidden layers such as (64, 64), got {self.hidden!r}."
            )
        checked = tuple(check_integer("hidden", width, at_least=1) for width in widths)
        object.__setattr__(self, "hidden", checked)
        check_choice("activation", self.activation, tuple(ACTIVATIONS))
        super().__post_init__()

    def initial(self, rng: np.random.Generator, n_columns: int, n_decisions: int) -> Tree:
        """Draw weights of variance 1/inputs (2/inputs for relu), biases zero."""
        gain = 2.0 if self.activation == "relu" else 1.0
        sizes = (n_columns, *self.hidden, n_decisions)
        trained = {}
        for layer, (inputs, outputs) in enumerate(itertools.pairwise(sizes)):
            weight = np.sqrt(gain / inputs) * rng.normal(size=(inputs, outputs))
            last = layer == len(self.hidden)
            trained[f"weight{layer}"] = LAST_LAYER * weight if last else weight
            trained[f"bias{layer}"] = np.zeros(outputs)
        return trained

    def raw(
        self, trained: Tree, units: Mapping[str, FloatArray], inputs: FloatArray, xp: ArrayNamespace
    ) -> FloatArray:
        """Return centre + unit * network."""
        bend = ACTIVATIONS[self.activation]
        values = standardised(units, inputs)
        for layer in range(len(self.hidden)):
            values = bend(values @ trained[f"weight{layer}"] + trained[f"bias{layer}"], xp)
        last = len(self.hidden)
        out = values @ trained[f"weight{last}"] + trained[f"bias{last}"]
        decisions: FloatArray = units["centre"] + units["unit"] * out
        return decisions
