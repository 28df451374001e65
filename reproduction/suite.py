"""The grid: data set x method x repetition, each a cell with a readable key."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from reproduction.data import SEED, DataSet, SyntheticSet, YazSet
from reproduction.methods import METHODS, Method
from surefoot.exceptions import InvalidInputError
from surefoot.random import rng_for
from surefoot.validation import check_integer

SIZES = (10, 30, 50, 70, 100, 300, 500)
COLUMNS = (100, 1000)
VARIANCES = (0.1, 0.5, 1.0, 5.0)
PRODUCTS = ("calamari", "fish", "shrimp", "chicken", "koefte", "lamb", "steak")
WINDOWS = (30, 60, 120, 300, 595)
REPETITIONS = 20

Coefficients = Literal["positive", "mixed"]
Contexts = Literal["uniform", "gaussian"]


@dataclass(frozen=True)
class Cell:
    """One fit: a method on one repetition of a data set. It can be run alone, anywhere.

    Examples
    --------
    >>> from reproduction import METHODS, Cell, SyntheticSet
    >>> Cell(SyntheticSet(n=10, s=100, noise_variance=1.0), METHODS[0], 3).key
    'synthetic/positive/uniform/s=100/variance=1/n=10/ours-auto-2/repetition=3'
    """

    data: DataSet
    method: Method
    repetition: int

    @property
    def key(self) -> str:
        """Readable text that names the cell."""
        return f"{self.data.key}/{self.method.name}/repetition={self.repetition}"

    @property
    def seed(self) -> int:
        """The method's own seed; it depends on names alone."""
        rng = rng_for(SEED, "method", self.method.name, self.repetition)
        return int(rng.integers(1 << 31))


@dataclass(frozen=True)
class Suite:
    """What to run.

    Attributes
    ----------
    data
        The data sets.
    methods
        The methods, each on every data set.
    repetitions
        How often, where a repetition has rows of its own; real data are run once.
    """

    data: tuple[DataSet, ...]
    methods: tuple[Method, ...]
    repetitions: int

    def __post_init__(self) -> None:
        """Refuse grids in which two cells would share a key."""
        check_integer("repetitions", self.repetitions, at_least=1)
        for what, names in (
            ("data sets", [data.key for data in self.data]),
            ("methods", [method.name for method in self.methods]),
        ):
            if not names or len(set(names)) < len(names):
                raise InvalidInputError(f"{what} must be distinct and at least one, got {names}.")

    def cells(self) -> Iterator[Cell]:
        """All cells: repetition by repetition, and neighbours share their data."""
        for repetition in range(self.repetitions):
            for data in self.data:
                if repetition == 0 or data.repeatable:
                    for method in self.methods:
                        yield Cell(data, method, repetition)


def chosen_methods(names: Sequence[str] | None) -> tuple[Method, ...]:
    """Return the methods of these names, in the order of the suite; None is all.

    >>> [method.label for method in chosen_methods(["saa", "ours-auto-2"])]
    ['robust linear', 'SAA']
    """
    known = {method.name: method for method in METHODS}
    if names is None:
        return METHODS
    for name in names:
        if name not in known:
            raise InvalidInputError(f"methods must be among {', '.join(known)}, got {name!r}.")
    if not names:
        raise InvalidInputError("methods must be at least one name, got none.")
    return tuple(method for name, method in known.items() if name in set(names))


def grid(
    sizes: Sequence[int] = SIZES,
    columns: Sequence[int] = COLUMNS,
    variances: Sequence[float] = VARIANCES,
    *,
    coefficients: Coefficients = "positive",
    contexts: Contexts = "uniform",
) -> tuple[SyntheticSet, ...]:
    """Return the paper's grid, or a part of it; the smallest data sets come first.

    >>> len(grid())
    56
    """
    return tuple(
        SyntheticSet(n, s, variance, coefficients, contexts)
        for s in columns
        for n in sizes
        for variance in variances
    )


def restaurant(
    products: Sequence[str] = PRODUCTS, windows: Sequence[int] = WINDOWS
) -> tuple[YazSet, ...]:
    """Return the yaz data sets: every product, growing windows of days."""
    return tuple(YazSet(product, days) for days in windows for product in products)


def quick_suite(
    methods: tuple[Method, ...] = METHODS,
    repetitions: int = 2,
    *,
    coefficients: Coefficients = "positive",
    contexts: Contexts = "uniform",
) -> Suite:
    """Return the suite of a minute: all methods, four sizes, both dimensions, two ingredients."""
    small = grid((10, 50, 100), (100,), (0.1, 5.0), coefficients=coefficients, contexts=contexts)
    large = grid((300,), (100,), (1.0,), coefficients=coefficients, contexts=contexts)
    wide = grid((10, 50), (1000,), (1.0,), coefficients=coefficients, contexts=contexts)
    shop = restaurant(("lamb", "fish"), (30, 120))
    return Suite((*small, *large, *wide, *shop), methods, repetitions)


def paper_suite(
    methods: tuple[Method, ...] = METHODS,
    repetitions: int = REPETITIONS,
    *,
    coefficients: Coefficients = "positive",
    contexts: Contexts = "uniform",
) -> Suite:
    """Return the paper's whole grid and the restaurant."""
    synthetic = grid(coefficients=coefficients, contexts=contexts)
    return Suite((*synthetic, *restaurant()), methods, repetitions)


def variant_suite(methods: tuple[Method, ...] = METHODS, repetitions: int = 3) -> Suite:
    """Return a part of the grid under the other context law and the other coefficients."""
    variants: tuple[tuple[Coefficients, Contexts], ...] = (
        ("positive", "gaussian"), ("mixed", "uniform"), ("mixed", "gaussian"),
    )  # fmt: skip
    narrow, wide = ((10, 50, 100, 500), (100,), (0.1, 1.0, 5.0)), ((50, 100), (1000,), (1.0,))
    data = [
        member
        for coefficients, contexts in variants
        for part in (narrow, wide)
        for member in grid(*part, coefficients=coefficients, contexts=contexts)
    ]
    return Suite(tuple(data), methods, repetitions)
