"""Tests that find a rise of realised costs: one of our own, and river's."""

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any

from surefoot.exceptions import InvalidTypeError
from surefoot.tracing import load_extra
from surefoot.validation import check_flag, check_integer, check_number

# A watch of river's keeps at most this many costs: it is rebuilt from them, as it cannot be saved.
KEPT_COSTS = 4_000
# A change counts as a rise if so many newest costs are dearer on average than those before.
NEWEST_COSTS = 30


class Detector(ABC):
    """A test and its options."""

    @abstractmethod
    def start(self) -> "Watch":
        """Return the test before its first cost."""


@dataclass(frozen=True)
class PageHinkley(Detector):
    r"""Find a rise of the mean cost by the test of Page and Hinkley. Needs no other package.

    With the running mean m_t of the costs c_t it sums

    .. math:: s_t = s_{t-1} + \min(c_t / m_t - 1, largest) - \delta

    and finds a rise when s_t - min_k s_k exceeds the threshold.

    Parameters
    ----------
    delta
        Rises below this share of the mean cost are ignored.
    threshold
        How many mean costs the rises must sum to.
    least
        No change is found before so many costs.
    largest
        A single cost counts for at most so many mean costs, so that one bad day is no change.
    relative
        False: costs are not divided by their mean; delta, threshold and largest then are costs.

    Examples
    --------
    >>> watch = PageHinkley().start()
    >>> any(watch.update(1.0) for _ in range(500)), any(watch.update(3.0) for _ in range(50))
    (False, True)

    References
    ----------
    Page (1954), "Continuous inspection schemes".
    """

    delta: float = 0.15
    threshold: float = 30.0
    least: int = 30
    largest: float = 4.0
    relative: bool = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "delta", check_number("delta", self.delta, at_least=0))
        object.__setattr__(self, "threshold", check_number("threshold", self.threshold, above=0))
        object.__setattr__(self, "least", check_integer("least", self.least, at_least=1))
        largest = check_number("largest", self.largest, above=0, finite=False)
        object.__setattr__(self, "largest", largest)
        object.__setattr__(self, "relative", check_flag("relative", self.relative))

    def start(self) -> "Watch":
        """Return the test before its first cost."""
        return _PageHinkleyWatch(self)


class _PageHinkleyWatch:
    """Running numbers of the test."""

    def __init__(self, options: PageHinkley) -> None:
        self.options = options
        self.count, self.mean, self.total, self.lowest = 0, 0.0, 0.0, math.inf

    def update(self, cost: float) -> bool:
        """Take the newest cost; return whether the mean has risen."""
        options = self.options
        self.count += 1
        self.mean += (cost - self.mean) / self.count
        unit = (abs(self.mean) or 1.0) if options.relative else 1.0
        self.total += min((cost - self.mean) / unit, options.largest) - options.delta
        self.lowest = min(self.lowest, self.total)
        return self.count >= options.least and self.total - self.lowest > options.threshold

    def state(self) -> dict[str, Any]:
        """Return the running numbers."""
        numbers = {"count": self.count, "mean": self.mean, "total": self.total}
        return numbers | {"lowest": self.lowest if self.count else None}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from running numbers."""
        self.count = int(state["count"])
        self.mean, self.total = float(state["mean"]), float(state["total"])
        self.lowest = math.inf if state["lowest"] is None else float(state["lowest"])


@dataclass(frozen=True)
class River(Detector):
    """Any drift detector of river, such as ``River(river.drift.KSWIN())``.

    River's detectors cannot be saved. So the newest costs are kept (4,000 at most, then the older half
    is dropped) and the detector is always what these costs make of a fresh one: loading repeats them.
    A detector with random numbers needs a seed.

    Parameters
    ----------
    detector
        An object with river's ``clone``, ``update`` and ``drift_detected``; it is not changed itself.
    """

    detector: Any

    def __post_init__(self) -> None:
        """Check for river's conventions."""
        for name in ("clone", "update", "drift_detected"):
            if not hasattr(self.detector, name):
                raise InvalidTypeError(
                    f"detector must be one of river's, with {name!r}, got {self.detector!r}."
                )

    def start(self) -> "Watch":
        """Return the test before its first cost."""
        return _RiverWatch(self.detector)


@dataclass(frozen=True)
class ADWIN(Detector):
    """River's adaptive windowing: two means in one window that differ too much for chance.

    Costs may fall as a policy learns; only a rise counts as a change. Saved as ``River`` is.

    Parameters
    ----------
    delta
        In (0, 1): the smaller, the fewer false alarms, the later the true ones.

    References
    ----------
    Bifet and Gavaldà (2007), "Learning from time-changing data with adaptive windowing".
    """

    delta: float = 0.002

    def __post_init__(self) -> None:
        delta = check_number("delta", self.delta, above=0, below=1)  # a probability
        object.__setattr__(self, "delta", delta)

    def start(self) -> "Watch":
        """Return the test before its first cost."""
        needed = "ADWIN needs river: run pip install 'surefoot[online]'. PageHinkley() needs nothing."
        drift = load_extra("river.drift", needed)
        return _RiverWatch(drift.ADWIN(delta=self.delta))


class _RiverWatch:
    """A detector of river and the costs that made it what it is."""

    def __init__(self, fresh: Any) -> None:
        self.fresh, self.costs = fresh, list[float]()
        self.running = fresh.clone()

    def update(self, cost: float) -> bool:
        """Take the newest cost; return whether a change was found and costs have risen."""
        if len(self.costs) == KEPT_COSTS:
            self.restore({"costs": self.costs[KEPT_COSTS // 2 :]})
        self.costs.append(cost)
        self.running.update(cost)
        return bool(self.running.drift_detected) and self._risen()

    def _risen(self) -> bool:
        before = len(self.costs) - NEWEST_COSTS
        if before < 1:
            return False
        newest = sum(islice(self.costs, before, None)) / NEWEST_COSTS
        return newest > sum(islice(self.costs, before)) / before

    def state(self) -> dict[str, Any]:
        """Return the costs since the start, or the newest of them."""
        return {"costs": list(self.costs)}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Repeat costs from the start."""
        self.costs, self.running = [float(cost) for cost in state["costs"]], self.fresh.clone()
        for cost in self.costs:
            self.running.update(cost)


# A test in progress: it takes realised costs one by one, and its state is plain numbers.
Watch = _PageHinkleyWatch | _RiverWatch
