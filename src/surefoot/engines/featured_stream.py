"""A feature map in front of a stream: the stream behind it sees features."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from surefoot.engines.compiling import as_compiled
from surefoot.engines.stream import Stream, StreamOptions
from surefoot.engines.stream_kernels import known_rows, scale_rows
from surefoot.exceptions import InvalidInputError
from surefoot.policies import Linear, Policy
from surefoot.typing import FloatArray


class FeaturedStream(Stream):
    """A stream of features.

    Attributes
    ----------
    columns
        Running numbers of the contexts: a missing entry stands at its column's mean.
    policy
        With its feature map fitted.
    first
        The rows that the map was fitted to: it is fitted to them again after loading.
    """

    def __init__(
        self, options: StreamOptions, columns: Any, policy: Policy, first: FloatArray, inner: Stream
    ) -> None:
        self.options, self._columns, self.policy = options, columns, policy
        self.first, self.inner = first, inner
        self._rules = options.rules()

    @property
    def block(self) -> int:
        """Rows between two looks at drift."""
        return self.inner.block

    @property
    def columns(self) -> Any:
        """What is known of each column of the contexts."""
        return self._columns

    @property
    def feature_columns(self) -> Any:
        """What is known of each feature."""
        return self.inner.columns

    def learn(
        self, rows: FloatArray, outcomes: FloatArray, offsets: FloatArray | None = None
    ) -> FloatArray:
        """Take one update for each row."""
        self._refuse_unknown(rows[:1])  # from the second row on, all columns were seen
        rows = as_compiled(rows)
        columns, filled = self._columns.copy(), np.empty_like(rows)
        unused = [np.empty_like(rows) for _ in range(4)]
        scale_rows(rows, columns, self._rules, True, filled, *unused)
        decisions = self.inner.learn(
            self.policy.transform(filled), outcomes, self._offsets(filled, offsets)
        )
        self._columns = columns
        return decisions

    def decide(self, rows: FloatArray, offsets: FloatArray | None = None) -> FloatArray:
        """Return decisions."""
        self._refuse_unknown(rows)
        known = known_rows(rows, self._columns)
        return self.inner.decide(self.policy.transform(known), self._offsets(known, offsets))

    def _offsets(self, contexts: FloatArray, offsets: FloatArray | None) -> FloatArray | None:
        if offsets is not None or not isinstance(self.policy, Linear):
            return offsets
        return self.policy.offsets(contexts)

    def _refuse_unknown(self, rows: FloatArray) -> None:
        """Refuse a gap in a column never seen: a fitted model may not remember the contexts' means."""
        if (np.isnan(rows) & (self._columns["count"] == 0.0)).any():
            raise InvalidInputError(
                "x must have every key of the model until one sample was learned, got a missing one: "
                "the mean that would stand in for it is not known yet."
            )

    def parameters(self) -> Any:
        """Return the policy that decides, in units of the features."""
        return self.inner.parameters()

    def realised(self, decisions: FloatArray, outcomes: FloatArray) -> FloatArray:
        """Return what decisions have cost."""
        return self.inner.realised(decisions, outcomes)

    def put(self, arrays: Mapping[str, FloatArray]) -> None:
        """Go back to what ``arrays`` describes."""
        self._columns = arrays["context_columns"].copy()
        self.inner.put(inner_arrays(arrays))

    def restart(self) -> None:
        """Take large steps again."""
        self.inner.restart()

    def arrays(self) -> dict[str, FloatArray]:
        """Return all that the next update needs."""
        behind = {f"inner_{name}": array for name, array in self.inner.arrays().items()}
        return behind | {"context_columns": self._columns.copy(), "first": self.first.copy()}


def inner_arrays(arrays: Mapping[str, FloatArray]) -> dict[str, FloatArray]:
    """Return the arrays of the stream behind the map."""
    return {k.removeprefix("inner_"): a for k, a in arrays.items() if k.startswith("inner_")}
