"""Who takes part, how each is installed, and what each is asked."""

from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent
SIZES, REPETITIONS = (10, 50, 100, 500, 2_000), 3


def radii(n):
    """Four radii around the best ones, in standard deviations of the columns."""
    return (0.1, 0.3, 1.0, 3.0) if n <= 100 else (0.01, 0.03, 0.1, 0.3)


@dataclass(frozen=True)
class Method:
    """One way to use a library; `radius` is "default", "hindsight" (the best of four) or "one" of them."""

    name: str
    radius: str = "default"
    largest: int = SIZES[-1]
    repetitions: int = REPETITIONS
    note: str = ""

    def radii(self, n):
        return {"hindsight": radii(n), "one": radii(n)[2:3], "default": (None,)}[self.radius]


@dataclass(frozen=True)
class Peer:
    """A library, its environment, the script that calls it, and the import a user would write."""

    name: str
    package: str
    install: tuple[str, ...]
    script: str
    imports: str
    methods: tuple[Method, ...]
    cannot: tuple[tuple[str, str], ...] = ()
    fits_outcomes: bool = False  # a fit(X, y) of its own, not a program that our script writes


PEERS = (
    Peer(
        "Surefoot", "surefoot", (str(ROOT),), "with_surefoot.py", "from surefoot import RobustNewsvendor",
        (
            Method("order 2", note="seconds include choosing the radius"),
            Method("order 1", note="seconds include choosing the radius"),
            Method("order 2, no intercept", note="seconds include choosing the radius"),
            Method("order 2", "hindsight"),
            Method("order 1", "hindsight"),
        ),
        fits_outcomes=True,
    ),
    Peer(
        "CVXPY", "cvxpy", ("cvxpy==1.9.3", "clarabel==0.11.1"), "with_cvxpy.py", "import cvxpy",
        (
            Method("order 2", "hindsight", note="the dual derived and written by hand"),
            Method("order 1", "hindsight", note="the dual derived and written by hand"),
        ),
    ),
    Peer(
        "scikit-learn", "scikit-learn", ("scikit-learn==1.9.1",), "with_sklearn.py",
        "from sklearn.linear_model import QuantileRegressor",
        (
            Method("QuantileRegressor, alpha 0"),
            Method("QuantileRegressor, defaults", note="alpha = 1 leaves a constant order"),
            Method("QuantileRegressor, alpha", "hindsight", note="a 1-norm penalty: order 1, maximum norm"),
        ),
        fits_outcomes=True,
    ),
    Peer(
        "dro", "dro", ("dro==0.4.3", "torch==2.13.0"), "with_dro.py",
        "import cpu_torchvision; from dro.linear_model.wasserstein_dro import WassersteinDRO",
        (
            Method("exact, defaults", note="radius 0"),
            Method("exact, order 1", "hindsight", note="a subclass replaces the cost"),
            Method("exact, order 1, no intercept", "hindsight", note="a subclass replaces the cost"),
            Method("neural, multiplier 1", note="a fixed multiplier, not a radius; a subclass replaces the cost"),
            Method("neural, one ball for each row", largest=10, repetitions=1, note="its attacks are for classifiers"),
        ),
        (("exact, order 2", "not run: WassersteinDRO has it for least squares alone, and MOTDRO (with a KL term) takes b and h as equal"),),
        fits_outcomes=True,
    ),
    Peer(
        "skwdro", "skwdro", ("skwdro==1.1.1", "torch==2.13.0"), "with_skwdro.py",
        "from skwdro.torch import robustify",
        (
            Method("documented loop, order 2", "hindsight"),
            Method("documented loop, order 1", "hindsight"),
            Method("own solver, defaults", largest=50, repetitions=1, note="one repetition; larger n not tried"),
            Method("NewsVendor, no contexts", note="its ready-made newsvendor takes no contexts"),
        ),
    ),
    Peer(
        "RSOME", "rsome", ("rsome==1.3.1", "ecos==2.0.14"), "with_rsome.py", "from rsome import dro, eco_solver",
        (
            Method("order 1", "one", repetitions=1, note="GPL; one repetition; seconds include building the model"),
            Method("order 2", "one", 50, 1, note="GPL; one repetition, small n; seconds include building the model"),
        ),
    ),
    Peer(
        "PyEPO", "pyepo", ("pyepo==2.2.7", "torch==2.13.0"), "with_pyepo.py",
        "from pyepo.func import SPOPlus; from pyepo.data.dataset import optDataset",
        (Method("SPO+ over 25 order levels", note="not robust; orders between the smallest and largest outcome seen"),),
        (("Wasserstein ball", "no ambiguity sets: it learns to predict coefficients of a linear objective"),),
    ),
    Peer(
        "ddop", "ddop", ("ddop==0.7.6",), "", "", (),
        (("any", "its pinned dependencies predate this Python: numpy 1.17.3, which they need, does not build"),),
    ),
)  # fmt: skip
