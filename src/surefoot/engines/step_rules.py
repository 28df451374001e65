"""How far each new sample may move the parameters, and how the radius follows the stream."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

from surefoot.engines.optimizers import SGD, Adam
from surefoot.engines.stream_kernels import ADAPTIVE_RULE, CONSTANT_RULE, DECAYING_RULE
from surefoot.validation import check_integer, check_number


class StepRule(ABC):
    """The size of a step along the gradient at the moved sample.

    The gradient is that of the cost in the policy's parameters, with contexts in running standard
    deviations (if the ball has ``scale=True``) and decisions in the outcome's units.
    """

    averages: ClassVar[bool] = True
    """Whether decisions come from an average over the newest tenth of the steps."""
    falls: ClassVar[bool] = False
    """Whether the size falls as 1/sqrt(t)."""

    @abstractmethod
    def optimizer(self, adaptive: Adam | None) -> Adam | SGD | None:
        """Return how the autodiff engine steps; ``adaptive`` is its own way, None for ``Linear``."""

    @abstractmethod
    def coded(self) -> tuple[float, float]:
        """Return the rule's number and its size, as the compiled kernel takes them."""


@dataclass(frozen=True)
class AdaptiveStep(StepRule):
    """The distance travelled over the root of the summed squared gradients; nothing to tune.

    Policies beyond ``Linear`` step by Adam.

    Examples
    --------
    >>> AdaptiveStep()
    AdaptiveStep()
    """

    def optimizer(self, adaptive: Adam | None) -> Adam | SGD | None:
        """Return the engine's own way."""
        return adaptive

    def coded(self) -> tuple[float, float]:
        """Return the rule's number and a size that is not used."""
        return ADAPTIVE_RULE, 0.0


@dataclass(frozen=True)
class SizedStep(StepRule):
    """A plain gradient step whose size the user gives."""

    size: float

    def __post_init__(self) -> None:
        """Check the size."""
        object.__setattr__(self, "size", check_number("size", self.size, above=0))

    def optimizer(self, adaptive: Adam | None) -> Adam | SGD | None:
        """Return plain gradient steps."""
        del adaptive
        return SGD(self.size)


@dataclass(frozen=True)
class ConstantStep(SizedStep):
    """The same step size for ever: follows any change, never settles. Decisions are not averaged.

    Parameters
    ----------
    size
        > 0, in units of the outcome for costs such as ``Newsvendor``.

    Examples
    --------
    >>> ConstantStep(0.05)
    ConstantStep(size=0.05)
    """

    averages: ClassVar[bool] = False

    def coded(self) -> tuple[float, float]:
        """Return the rule's number and size."""
        return CONSTANT_RULE, self.size


@dataclass(frozen=True)
class DecayingStep(SizedStep):
    r"""A step of size / sqrt(t) at sample t, counted from the start or the last restart.

    Parameters
    ----------
    size
        > 0, the first step, in units of the outcome for costs such as ``Newsvendor``.

    Examples
    --------
    >>> DecayingStep(0.5)
    DecayingStep(size=0.5)
    """

    falls: ClassVar[bool] = True

    def coded(self) -> tuple[float, float]:
        """Return the rule's number and size."""
        return DECAYING_RULE, self.size


@dataclass(frozen=True)
class DecayingRadius:
    r"""The ball's radius for the first ``rows`` samples, then proportional to 1/sqrt(t).

    .. math:: \rho_t = \rho \min(1, \sqrt{rows / t})

    with the radius rho of the ball, and t counted from the start or the last restart. After a fit on n
    rows, ``rows=n`` lets the fitted radius fall as the evidence grows.

    Parameters
    ----------
    rows
        >= 1, the sample up to which the ball's own radius holds.

    Examples
    --------
    >>> DecayingRadius().at(0.4, 16)
    0.1
    """

    rows: int = 1

    def __post_init__(self) -> None:
        """Check the option."""
        object.__setattr__(self, "rows", check_integer("rows", self.rows, at_least=1))

    def at(self, radius: float, time: float) -> float:
        """Return the radius at sample ``time``, counted from 1."""
        return radius if time <= self.rows else float(radius * (self.rows / time) ** 0.5)
