"""A feature map in front of a stream: the learner behind it sees features."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from surefoot.engines.online import scale_rows
from surefoot.engines.online_constants import COUNT, MEAN
from surefoot.exceptions import InvalidInputError
from surefoot.online.learner import StreamLearner, kernel_options
from surefoot.online.settings import Settings
from surefoot.online.start import feature_table
from surefoot.policies import Policy
from surefoot.typing import FloatArray

Begin = Callable[[Settings, FloatArray, FloatArray, FloatArray], StreamLearner]


@dataclass(eq=False)
class FeatureStream(StreamLearner):
    """A learner of features.

    Attributes
    ----------
    table
        Running numbers of the contexts: a missing entry stands at its column's mean.
    first
        The first rows, without gaps: the feature map is fitted to them, here and after loading.
    """

    settings: Settings
    table: FloatArray
    first: FloatArray
    inner: StreamLearner

    def __post_init__(self) -> None:
        """Fit the map to the first rows."""
        self._policy: Policy = self.settings.policy.fitted(self.first)
        self._options = kernel_options(self.settings, self.table)

    @classmethod
    def start(
        cls, begin: Begin, settings: Settings, table: FloatArray, rows: FloatArray, outcomes: FloatArray
    ) -> "FeatureStream":
        """Fit the map to the first rows, and begin with their features."""
        first = np.where(np.isnan(rows), table[MEAN], rows)
        features = settings.policy.fitted(first).transform(first)
        behind = settings.without_features()
        inner = begin(behind, feature_table(features, behind), features, outcomes)
        return cls(settings, table, first, inner)

    @property
    def block(self) -> int:
        """Rows between two looks at drift."""
        return self.inner.block

    def learn(self, rows: FloatArray, outcomes: FloatArray) -> FloatArray:
        """Take one update for each row."""
        self._refuse_unknown(rows[:1])  # from the second row on, all columns were seen
        table, filled = self.table.copy(), np.empty_like(rows)
        scale_rows(rows, table, self._options, True, filled, np.empty_like(rows), np.empty_like(rows))
        decisions = self.inner.learn(self._policy.transform(filled), outcomes)
        self.table = table
        return decisions

    def decide(self, rows: FloatArray) -> FloatArray:
        """Return decisions."""
        self._refuse_unknown(rows)
        filled = np.where(np.isnan(rows), self.table[MEAN], rows)
        return self.inner.decide(self._policy.transform(filled))

    def _refuse_unknown(self, rows: FloatArray) -> None:
        """Refuse a gap in a column never seen: a fitted model does not remember the contexts' means."""
        if (np.isnan(rows) & (self.table[COUNT] == 0.0)).any():
            raise InvalidInputError(
                "x must have every key of the model until one sample was learned, got a missing one: "
                "the mean that would stand in for it is not known yet."
            )

    def decide_row(self, row: FloatArray) -> FloatArray:
        """Return the decision for one row."""
        decision: FloatArray = self.decide(row[None, :])[0]
        return decision

    def realised(self, decisions: FloatArray, outcomes: FloatArray) -> FloatArray:
        """Return what decisions have cost."""
        return self.inner.realised(decisions, outcomes)

    def put(self, arrays: Mapping[str, FloatArray]) -> None:
        """Go back to what ``arrays`` describes."""
        self.table = arrays["context_table"].copy()
        self.inner.put(inner_arrays(arrays))

    def restart(self) -> None:
        """Take large steps again."""
        self.inner.restart()

    def arrays(self) -> dict[str, FloatArray]:
        """Return all that the next update needs."""
        behind = {f"inner_{name}": array for name, array in self.inner.arrays().items()}
        return behind | {"context_table": self.table.copy(), "first": self.first.copy()}


def inner_arrays(arrays: Mapping[str, FloatArray]) -> dict[str, FloatArray]:
    """Return the arrays of the learner behind the map."""
    return {k.removeprefix("inner_"): a for k, a in arrays.items() if k.startswith("inner_")}
