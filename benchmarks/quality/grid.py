"""The cells of the quality benchmark: a part of the paper's grid that spans every factor, and yaz."""

from reproduction.data import SyntheticSet
from reproduction.methods import Default, Robust
from reproduction.suite import restaurant
from surefoot.forecasts import Forecaster

# (n, noise variance) for each number of columns; each pair under both coefficient patterns and both
# context laws. Every n, every variance and both s occur; sizes where fits are slow occur less often.
PAIRS = {
    100: (
        (10, 0.1), (10, 1.0), (10, 5.0), (30, 0.5), (50, 1.0), (50, 5.0), (70, 0.5),
        (100, 0.1), (100, 1.0), (100, 5.0), (300, 0.5), (500, 1.0), (500, 5.0),
    ),
    1000: ((10, 0.5), (30, 5.0), (50, 1.0), (70, 0.1), (100, 1.0), (300, 0.1)),
}  # fmt: skip
REPETITIONS = 10
OURS = Default("ours", "Surefoot")
FORMER = Default("former", "one forecast, corrected (the former default)", Forecaster())
# What the former default is made of, one part left out at a time; and cross-validation of the radius alone.
ABLATIONS = (
    Default("ours-no-common", "without the common coefficient", Forecaster(common=False)),
    Default("ours-no-trees", "without trees", Forecaster(trees=False)),
    Default("ours-linear", "linear forecast only", Forecaster(smooth=False, trees=False)),
    Default("ours-empirical", "robust linear: radius by cross-validation", None),
)
# The radius in hindsight, for the cells where it is asked for.
FIXED = tuple(
    Robust(f"ours-fixed-{radius:g}", f"fixed radius {radius:g}", radius=radius)
    for radius in (0.03, 0.1, 0.3, 1.0)
)
BASELINES = ("saa", "erm-vertex", "erm-norm", "erm-l1", "forest", "shapley-auto")


def synthetic_sets():
    """All cells of the synthetic part, the quick ones first."""
    found = [
        SyntheticSet(n, s, variance, coefficients, contexts)
        for s, pairs in PAIRS.items()
        for n, variance in pairs
        for coefficients in ("positive", "mixed")
        for contexts in ("uniform", "gaussian")
    ]
    return tuple(sorted(found, key=lambda cell: cell.n * (1 + cell.s // 500)))


def all_sets():
    """Synthetic cells and the restaurant."""
    return (*synthetic_sets(), *restaurant())


def asks_parts(data):
    """Whether the parts of the default are told apart: where fits are quick, and at the restaurant."""
    parts = data.parts
    return parts.kind == "yaz" or (parts.s == 100 and parts.n <= 100)


def asks_radius(data):
    """Whether the best radius in hindsight is asked for: at n = 10 and from n = 100."""
    parts = data.parts
    return parts.kind == "synthetic" and (parts.n == 10 or parts.n >= 100)
