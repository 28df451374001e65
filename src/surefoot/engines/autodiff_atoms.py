"""What the adversary of the autodiff engine does to the rows of a problem."""

from typing import Any

import numpy as np

from surefoot.ambiguity import Adversary
from surefoot.certificates import (
    dual_value,
    growth_power,
    move_distances,
)
from surefoot.certificates.general import lower_bound
from surefoot.engines.autodiff_forms import FormBatch
from surefoot.engines.engine import Options, Parameters
from surefoot.engines.multiplier_search import (
    Judged,
)
from surefoot.exceptions import UnboundedProblemError
from surefoot.problem import GeneralForm, Problem, general_form
from surefoot.typing import FloatArray

# Rows are split in two only where more than this share of the budget would be left unspent.
UNSPENT = 0.005
# Growth is measured between two far moves; a power this much above the order is above it.
POWER_SLACK = 0.25


def moved_rows(form: GeneralForm, judged: Judged, number: int, *, beyond: bool = False) -> Adversary:
    """Return the rows of one problem with where the adversary took them.

    ``beyond`` asks for the moves at the smaller multiplier, which spend more than the budget.
    """
    real = judged.weights[number] > 0.0
    verdict, gamma = judged.verdict, float(judged.multiplier[number])
    if beyond:
        verdict = judged.beyond
    weights = judged.weights[number, real]
    contexts, outcomes = (np.asarray(part)[number, real] for part in (verdict.context, verdict.outcome))
    distances = move_distances(
        form, contexts - judged.contexts[number, real], outcomes - judged.outcomes[number, real]
    )
    return Adversary(
        value=float("nan"),
        expected_cost=float("nan"),
        multiplier=np.array([gamma]),
        transport_cost=np.array([weights @ distances]),
        rows=np.flatnonzero(form.weights > 0.0)[: len(weights)],
        products=np.zeros(len(weights), dtype=np.int64),
        contexts=contexts,
        outcomes=outcomes,
        weights=weights,
        distances=distances,
    )


def spending_atoms(form: GeneralForm, judged: Judged, number: int) -> Adversary:
    """Return a distribution in the ball that spends its budget: rows may be split in two.

    Moves at the multiplier keep to the budget, and may leave much of it unspent where costs are
    straight; those just beyond spend more. A mixture of both spends it all.
    """
    near, far = (moved_rows(form, judged, number, beyond=b) for b in (False, True))
    budget = form.radius**form.order
    if float(near.transport_cost[0]) > budget:  # near the best multiplier, and not above it
        real = judged.weights[number] > 0.0
        original = judged.contexts[number, real], judged.outcomes[number, real]
        stays = near._replace(
            contexts=original[0], outcomes=original[1], distances=0.0 * near.distances
        )
        near, far = stays._replace(transport_cost=np.zeros(1)), near
    spent, more = float(near.transport_cost[0]), float(far.transport_cost[0])
    if not np.isfinite(more) or more <= spent or spent >= (1.0 - UNSPENT) * budget:
        return near
    # Rows that go to nearly the same place at both multipliers stay whole.
    between = move_distances(form, far.contexts - near.contexts, far.outcomes - near.outcomes)
    apart = between > 0.1**form.order * budget
    more = spent + float(far.weights[apart] @ (far.distances - near.distances)[apart])
    if more <= spent:
        return near
    share = min(1.0, (budget - spent) / (more - spent))
    weights = np.concatenate(
        [np.where(apart, 1.0 - share, 1.0) * near.weights, share * far.weights[apart]]
    )
    kept = weights > 0.0

    def both(name: str) -> Any:
        return np.concatenate([getattr(near, name), getattr(far, name)[apart]])[kept]

    names = ("rows", "products", "contexts", "outcomes", "distances")
    parts = {name: both(name) for name in names}
    spending = np.array([weights[kept] @ parts["distances"]])
    return near._replace(**parts, weights=weights[kept], transport_cost=spending)


def proving_atoms(form: GeneralForm, judged: Judged, number: int, plan: Adversary | None) -> Adversary:
    """Return the distribution in the ball that proves more: that judged, or a plan if there is one."""
    atoms = spending_atoms(form, judged, number)
    if plan is not None and lower_bound(form, plan) > lower_bound(form, atoms):
        return plan
    return atoms


def autodiff_adversary(problem: Problem, parameters: Parameters) -> Adversary:
    """Return the worst distribution that gradient ascent finds around the rows of a problem."""
    form = general_form(problem, 0, getattr(parameters, "units", None))
    engine = FormBatch([form], [0], Options())
    trained = engine.joined(parameters)
    judged = engine.judge_policies(engine.init(), trained, whole=True)
    policy, auxiliary = engine.split(trained, 0)
    atoms = spending_atoms(form, judged, 0)
    costs = form.costs(policy, auxiliary, atoms.contexts, atoms.outcomes)
    outcomes = atoms.outcomes[:, 0] if atoms.outcomes.shape[1] == 1 else atoms.outcomes
    expected = float(atoms.weights @ costs)
    return atoms._replace(
        # A distribution in the ball costs this much, whatever the ascents have missed.
        value=max(dual_value(form, policy, auxiliary, moved_rows(form, judged, 0)), expected),
        expected_cost=expected,
        contexts=atoms.contexts[:, : form.n_features],
        outcomes=outcomes,
    )


def refuse_unbounded(
    form: GeneralForm, trained: Any, auxiliary: FloatArray, judged: Judged, number: int
) -> None:
    """Raise if the cost outgrows the distance: moving far then pays at any multiplier."""
    if form.radius == 0.0:
        return
    rows = judged.contexts[number], judged.outcomes[number]
    power = growth_power(form, trained, auxiliary, *rows)
    if power > form.order + POWER_SLACK:
        raise UnboundedProblemError(
            f"The worst case is unbounded: far away the cost grows with the power {power:.2g} of a "
            f"move, faster than the distance of order {form.order}. "
            + ("Use order=2, give" if form.order == 1 and power <= 2.0 + POWER_SLACK else "Give")
            + " the ball a support, or bound the decisions."
        )
