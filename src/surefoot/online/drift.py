"""What to do when the world changes: forget at a steady pace, or start afresh when costs rise."""

from dataclasses import dataclass, field

from surefoot.engines.stream import START_ROWS
from surefoot.online.detectors import Detector, PageHinkley, Watch
from surefoot.validation import check_instance, check_integer


@dataclass(frozen=True)
class Restart:
    """Take large steps again when realised costs have risen.

    Parameters, scale and distances are kept: what was learned is the best guess until the new samples
    say otherwise. The sums of squared gradients are cut to what 30 samples leave, and the count of
    samples (for averages, ``DecayingStep`` and ``DecayingRadius``) goes back to 30.

    Parameters
    ----------
    detector
        What finds the rise: ``PageHinkley()``, ``ADWIN()`` or ``River(...)`` with river installed.

    Examples
    --------
    >>> Restart(PageHinkley(threshold=50)).detector.threshold
    50.0
    """

    detector: Detector = field(default_factory=PageHinkley)

    def __post_init__(self) -> None:
        """Check the detector, and that what it needs is installed."""
        check_instance("detector", self.detector, Detector, "a detector such as PageHinkley()")
        self.detector.start()

    @property
    def window(self) -> int:
        """Nothing is forgotten between changes."""
        return 0

    def start(self) -> Watch | None:
        """Return a test before its first cost."""
        return self.detector.start()


@dataclass(frozen=True)
class Window:
    """Forget at a steady pace: a sample of age k counts with weight (1 - 1/rows)^k.

    Scale, step sizes, averages and the radius schedule look back over about ``rows`` samples, so the
    policy never stops following. Nothing but running numbers is kept.

    Parameters
    ----------
    rows
        >= 16, how far to look back. Learning starts with 16 samples, and steps that remember fewer
        grow without end; for a policy that has settled, take at least ten for each column.

    Examples
    --------
    >>> Window(500)
    Window(rows=500)
    """

    rows: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "rows", check_integer("rows", self.rows, at_least=START_ROWS))

    @property
    def window(self) -> int:
        """How many rows to look back."""
        return self.rows

    def start(self) -> Watch | None:
        """There is nothing to watch."""
        return None
