"""What the adversary does to the data: where samples go, along which columns, and what that costs."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from surefoot.ambiguity import Adversary
from surefoot.costs.quantiles import weighted_quantiles
from surefoot.engines.choice import adversary_of
from surefoot.engines.engine import Parameters
from surefoot.exceptions import InvalidInputError
from surefoot.nominals import Empirical
from surefoot.nominals.empirical import column_spread
from surefoot.policies import Select
from surefoot.problem import Problem, sampled_rows
from surefoot.text_table import text_table
from surefoot.typing import BoolArray, FloatArray, IntArray
from surefoot.validation import check_integer

# A move this small a share of the budget is rounding, and the sample counts as left alone.
SMALLEST_MOVE = 1e-9
# The budget counts as spent from this share of it on.
SPENT_SHARE = 0.99
# Columns and levels that the table and the quantiles show unless the user says otherwise.
SHOWN_COLUMNS = 5
LEVELS = (0.05, 0.25, 0.5, 0.75, 0.95)


@dataclass(frozen=True)
class ColumnShift:
    """What happens to one column of the contexts.

    Attributes
    ----------
    name
        The column, as the data frame called it.
    movable
        Whether the adversary may move it at all.
    before, after
        Weighted means in the user's units.
    shift, shift_in_deviations
        after - before, in the user's units and in standard deviations (NaN for a constant column).
    typical_move
        Root mean square of the moves, in standard deviations: samples may go both ways, and then
        move far while the mean stays.
    share
        Share of the whole transport cost that is spent on this column.
    """

    name: str
    movable: bool
    before: float
    after: float
    shift: float
    shift_in_deviations: float
    typical_move: float
    share: float


@dataclass(frozen=True, eq=False)
class Histogram:
    """One column before and after: ``edges`` of the bins and the mass in each of them."""

    name: str
    edges: FloatArray
    before: FloatArray
    after: FloatArray


@dataclass(frozen=True, eq=False)
class Augmentation:
    """The nominal distribution beside the augmented one, the worst in the ball for a policy.

    Every atom is a piece of a row's mass with a place before and a place after its move, so the
    atoms with their places before are the nominal itself. A product of an affine policy has an
    adversary of its own; ``of(product)`` shows that one alone.

    For order 2 and for closed boxes the augmented distribution attains the worst case: its expected
    cost is ``worst_case``. For order 1 without a box the inner problem has no finite maximiser. What
    is returned then moves the rows that already lie on the steep side of the kink, all equally far,
    which attains the worst case too; without such a row the nearest one goes, and ``cost_after``
    stays below ``worst_case``, which is approached only by ever less mass that moves ever farther.

    Attributes
    ----------
    columns
        Names of the columns; of the features if the policy has a feature map.
    radius, order
        Of the ball; the budget is radius^order.
    cost_before, cost_after, worst_case
        Expected cost under the nominal and under the augmented distribution, and the value of the
        certificate, all summed over products.
    multiplier, transport_cost
        The optimal gamma and the expected transport cost of each adversary.
    rows, products
        Which row of the data each atom comes from, and which product's adversary moved it.
    weights, distances
        Mass of each atom (one in all for each adversary) and its transport cost d_p in scaled units.
    contexts_before, contexts
        Shape (atoms, columns), in the user's units.
    outcomes_before, outcomes, decisions_before, decisions
        Shape (atoms,), or (atoms, products) where one adversary faces several products at once.
    scale, movable
        Shape (columns,): the units of transport, and which columns may move.
    """

    columns: tuple[str, ...]
    radius: float
    order: int
    cost_before: float
    cost_after: float
    worst_case: float
    multiplier: FloatArray
    transport_cost: FloatArray
    rows: IntArray = field(repr=False)
    products: IntArray = field(repr=False)
    weights: FloatArray = field(repr=False)
    distances: FloatArray = field(repr=False)
    contexts_before: FloatArray = field(repr=False)
    contexts: FloatArray = field(repr=False)
    outcomes_before: FloatArray = field(repr=False)
    outcomes: FloatArray = field(repr=False)
    decisions_before: FloatArray = field(repr=False)
    decisions: FloatArray = field(repr=False)
    scale: FloatArray = field(repr=False)
    movable: BoolArray = field(repr=False)

    @property
    def mass(self) -> FloatArray:
        """Weights that sum to one over all adversaries."""
        return np.asarray(self.weights / len(self.multiplier))

    @property
    def budget(self) -> float:
        """Most transport cost that an adversary may spend: radius^order."""
        return float(self.radius**self.order)

    @property
    def binding(self) -> bool:
        """Whether every adversary spends its budget."""
        return bool((self.transport_cost >= SPENT_SHARE * self.budget).all())

    @property
    def moved(self) -> BoolArray:
        """Which atoms move."""
        return np.asarray(self.distances > SMALLEST_MOVE * self.budget)

    @property
    def share_moved(self) -> float:
        """Share of the mass that moves."""
        return float(self.mass @ self.moved)

    @property
    def moves(self) -> FloatArray:
        """Moves of the contexts in units of transport, shape (atoms, columns)."""
        return np.asarray((self.contexts - self.contexts_before) / self.scale)

    @property
    def column_shares(self) -> FloatArray:
        """Share of the transport cost that each column takes, shape (columns,).

        A move Delta costs d = ||Delta||^p; column j takes d Delta_j^2 / ||Delta||^2 of it, which is
        Delta_j^2 for order 2. What is missing to one is spent on outcomes.
        """
        squares = self.moves**2
        lengths = squares.sum(axis=1)
        spent = lengths if self.order == 2 else np.sqrt(lengths)
        part = self.mass * spent / np.where(lengths > 0.0, lengths, 1.0)
        total = float(self.mass @ self.distances)
        return np.asarray(part @ squares / total) if total > 0.0 else np.zeros(len(self.columns))

    @property
    def outcome_share(self) -> float:
        """Share of the transport cost that is spent on outcomes."""
        spent = float(self.mass @ self.distances) > 0.0
        rest = 1.0 - float(self.column_shares.sum()) if spent else 0.0
        return rest if rest > SMALLEST_MOVE else 0.0

    @property
    def decision_shift(self) -> float:
        """Mean change of the decisions, over products and mass."""
        change = (self.decisions - self.decisions_before).reshape(len(self.mass), -1)
        return float(self.mass @ change.mean(axis=1))

    @property
    def decision_directions(self) -> tuple[float, float]:
        """Shares of the mass whose decisions fall and rise; where there are several, their mean."""
        change = (self.decisions - self.decisions_before).reshape(len(self.mass), -1)
        slack = 1e-12 * float(np.abs(self.decisions_before).max(initial=0.0))
        down, up = (change < -slack).mean(axis=1), (change > slack).mean(axis=1)
        return float(self.mass @ down), float(self.mass @ up)

    @property
    def column_shifts(self) -> tuple[ColumnShift, ...]:
        """What happens to each column, in the order of the columns."""
        mass, shares = self.mass, self.column_shares
        spread = column_spread(self.contexts_before, mass)
        before, after = mass @ self.contexts_before, mass @ self.contexts
        # From the moves, and not from the means: a column that stays still has a shift of zero.
        moves = self.contexts - self.contexts_before
        shift, typical = mass @ moves, np.sqrt(mass @ moves**2)
        with np.errstate(divide="ignore", invalid="ignore"):
            in_deviations = np.where(spread > 0.0, shift / spread, np.nan)
            typical = np.where(spread > 0.0, typical / spread, np.nan)
        return tuple(
            ColumnShift(
                name, bool(self.movable[j]), float(before[j]), float(after[j]), float(shift[j]),
                float(in_deviations[j]), float(typical[j]), float(shares[j]),
            )
            for j, name in enumerate(self.columns)
        )  # fmt: skip

    def most_used(self, count: int = SHOWN_COLUMNS) -> tuple[ColumnShift, ...]:
        """Return the columns on which most of the transport cost is spent, the largest share first."""
        check_integer("count", count, at_least=1)
        ranked = sorted(self.column_shifts, key=lambda column: -column.share)
        return tuple(column for column in ranked[:count] if column.share > 0.0)

    def position(self, column: str | int) -> int:
        """Return where a column stands, from its name or position."""
        if isinstance(column, str) and column in self.columns:
            return self.columns.index(column)
        whole = isinstance(column, int | np.integer) and not isinstance(column, bool)
        if whole and -len(self.columns) <= int(column) < len(self.columns):
            return int(column) % len(self.columns)
        shown = ", ".join(self.columns[:8]) + (", ..." if len(self.columns) > 8 else "")
        raise InvalidInputError(
            f"column must be a name ({shown}) or a position below {len(self.columns)}, got {column!r}."
        )

    def histogram(self, column: str | int, bins: int = 20) -> Histogram:
        """Return the distribution of a column before and after, over common bins."""
        check_integer("bins", bins, at_least=1)
        j = self.position(column)
        before, after = self.contexts_before[:, j], self.contexts[:, j]
        edges = np.histogram_bin_edges(np.concatenate([before, after]), bins)
        counts = [np.histogram(values, edges, weights=self.mass)[0] for values in (before, after)]
        return Histogram(self.columns[j], edges, *counts)

    def quantiles(self, levels: Sequence[float] = LEVELS) -> tuple[FloatArray, FloatArray]:
        """Return quantiles of every column before and after, each of shape (levels, columns)."""
        asked = np.atleast_1d(np.asarray(levels, dtype=np.float64))
        if not ((asked >= 0.0) & (asked <= 1.0)).all():
            raise InvalidInputError(f"levels must lie in [0, 1], got {levels!r}.")
        before, after = (
            np.stack([weighted_quantiles(table.T, self.mass, float(level)) for level in asked])
            for table in (self.contexts_before, self.contexts)
        )
        return before, after

    def samples(self) -> dict[str, FloatArray]:
        """Return the moved contexts by the names of their columns: what a data frame is made of."""
        return {name: self.contexts[:, j] for j, name in enumerate(self.columns)}

    def of(self, product: int) -> "Augmentation":
        """Return what one product's adversary does.

        The transport cost and the multiplier are that product's; the three costs stay those of all
        products together.
        """
        if not 0 <= check_integer("product", product, at_least=0) < len(self.multiplier):
            raise InvalidInputError(
                f"product must be a position below {len(self.multiplier)}, got {product!r}."
            )
        kept = self.products == product
        atoms = (
            "rows", "products", "weights", "distances", "contexts_before", "contexts",
            "outcomes_before", "outcomes", "decisions_before", "decisions",
        )  # fmt: skip
        part = {name: getattr(self, name)[kept] for name in atoms}
        one = slice(product, product + 1)
        return replace(
            self, multiplier=self.multiplier[one], transport_cost=self.transport_cost[one],
            **part | {"products": np.zeros_like(part["products"])},
        )  # fmt: skip

    def __str__(self) -> str:
        """Say in a few lines and a table what the adversary does."""
        down, up = self.decision_directions
        spent = float(self.transport_cost.max(initial=0.0))
        lines = [
            f"Cost {self.cost_before:.4g} under the data, {self.worst_case:.4g} in the worst case "
            f"(radius {self.radius:.4g}, order {self.order}).",
            f"Transport cost {spent:.4g} of a budget of {self.budget:.4g}; "
            f"{100 * self.share_moved:.3g} % of the mass moves.",
            f"Decisions change by {self.decision_shift:+.4g} on average: {100 * up:.3g} % rise, "
            f"{100 * down:.3g} % fall.",
        ]
        if self.outcome_share > 0.0:
            lines.append(f"{100 * self.outcome_share:.3g} % of the transport cost moves outcomes.")
        shown = self.most_used()
        if not shown:
            return "\n".join([*lines, "No column moves."])
        head = ("column", "before", "after", "shift, sd", "move, sd", "share")
        rows = [
            (
                c.name, f"{c.before:.4g}", f"{c.after:.4g}", f"{c.shift_in_deviations:+.3f}",
                f"{c.typical_move:.3f}", f"{100 * c.share:.1f} %",
            )
            for c in shown
        ]  # fmt: skip
        lines += ["", text_table(head, rows, right=5)]
        others = sum(column.share > 0.0 for column in self.column_shifts) - len(shown)
        if others > 0:
            lines.append(f"... and {others} more column{'s'[: others > 1]} (column_shifts has all)")
        return "\n".join(lines)


def augment(problem: Problem, parameters: Parameters) -> Augmentation:
    """Return what the adversary of a policy does to the nominal of a problem.

    Parameters
    ----------
    problem
        Fitted parts and nominal, at the radius in question. Rows are drawn (2,000, always the same)
        from a nominal that has none.
    parameters
        Those of the policy.

    Examples
    --------
    >>> from surefoot import RobustNewsvendor
    >>> from surefoot.datasets import synthetic
    >>> data = synthetic(n=60, s=4, seed=0)
    >>> model = RobustNewsvendor(1.0, 0.2, radius=0.2).fit(data.X, data.y)
    >>> found = model.augmentation(data.X, data.y)
    >>> found.binding, abs(found.cost_after / found.worst_case - 1.0) < 1e-3
    (True, True)
    """
    given, policy = problem.nominal, problem.policy
    nominal = given if isinstance(given, Empirical) else sampled_rows(given)
    sample = adversary_of(problem.around(nominal), parameters)
    inputs = policy.inputs(nominal.contexts, nominal.offsets)
    count = policy.transform(nominal.contexts[:1]).shape[1]
    features, fixed = inputs[:, :count], inputs[:, count:]
    on_features, before = replace(policy, features=None), features[sample.rows]

    def own(values: FloatArray) -> FloatArray:
        return _own(sample, values, nominal.n_products)

    def decisions(contexts: FloatArray) -> FloatArray:
        offsets = fixed[sample.rows] if fixed.shape[1] else None
        return np.asarray(own(on_features.decide(parameters, contexts, offsets)))

    decided = on_features.decide(parameters, features, fixed if fixed.shape[1] else None)
    ball = problem.ball
    return Augmentation(
        columns=_column_names(problem, nominal, count),
        radius=problem.radius,
        order=getattr(ball, "order", 1),
        cost_before=problem.cost.mean(decided, nominal.outcomes, nominal.weights),
        cost_after=sample.expected_cost,
        worst_case=sample.value,
        multiplier=sample.multiplier,
        transport_cost=sample.transport_cost,
        rows=sample.rows,
        products=sample.products,
        weights=sample.weights,
        distances=sample.distances,
        contexts_before=before,
        contexts=sample.contexts,
        outcomes_before=own(nominal.outcomes[sample.rows]),
        outcomes=sample.outcomes,
        decisions_before=decisions(before),
        decisions=decisions(sample.contexts),
        scale=ball.column_scale(np.zeros(count)),
        movable=~ball.frozen_columns(count),
    )


def _own(sample: Adversary, values: FloatArray, n_products: int) -> FloatArray:
    """Return each atom's own product, where products have adversaries of their own."""
    if values.shape[1] == 1:
        return values[:, 0]
    apart = sample.outcomes.ndim == 1 and n_products > 1
    return values[np.arange(len(values)), sample.products] if apart else values


def _column_names(problem: Problem, nominal: Empirical, count: int) -> tuple[str, ...]:
    """Return names of columns, or of features if the policy makes some."""
    features, names = problem.policy.features, nominal.names
    if isinstance(features, Select) and features.columns:
        kept = names or tuple(f"x{j}" for j in range(nominal.n_columns))
        return tuple(kept[j] for j in features.columns)
    if features is not None:
        return tuple(f"feature {j}" for j in range(count))
    return names or tuple(f"x{j}" for j in range(count))
