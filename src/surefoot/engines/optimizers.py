"""How the autodiff engine steps: choices that can be saved with a model."""

from dataclasses import dataclass

from surefoot.io import register
from surefoot.validation import check_flag, check_number


@register
@dataclass(frozen=True)
class Adam:
    """Adam, with a learning rate that falls along a cosine to zero.

    Parameters
    ----------
    learning_rate
        The first step size, in units of the standardised parameters.
    decay
        False: the learning rate stays as it is, as a stream wants it.

    Examples
    --------
    >>> Adam(learning_rate=1e-3)
    Adam(learning_rate=0.001, decay=True)
    """

    learning_rate: float = 3e-3
    decay: bool = True

    def __post_init__(self) -> None:
        check_number("learning_rate", self.learning_rate, above=0)
        check_flag("decay", self.decay)


@register
@dataclass(frozen=True)
class SGD:
    """Plain stochastic gradient descent with one step size, as in the paper.

    Parameters
    ----------
    learning_rate
        The paper's alpha.
    decay
        True: it falls along a cosine to zero.

    Examples
    --------
    >>> SGD(learning_rate=1e-3)
    SGD(learning_rate=0.001, decay=False)
    """

    learning_rate: float = 1e-3
    decay: bool = False

    def __post_init__(self) -> None:
        check_number("learning_rate", self.learning_rate, above=0)
        check_flag("decay", self.decay)
