"""``surefoot explain``: what a model file holds, in words."""

from dataclasses import asdict
from pathlib import Path
from typing import Any

from surefoot.cli.fit import show_strength
from surefoot.cli.model_table import load_model, robust_part
from surefoot.cli.screen import Screen
from surefoot.estimators.guarantees import SHIFT, decides
from surefoot.estimators.preparation import PreparedPolicy


def run(model: Path, *, screen: Screen) -> None:
    """Load a model and say what it was learned from, what it looks at and what is proved."""
    policy, about = load_model(model)
    robust: Any = robust_part(policy)
    certificate = robust.certificate_
    screen.say(f"{model}: {type(robust).__name__}. {robust.status_}")
    if about is not None:
        period = f", {about.period[0]} to {about.period[1]}" if about.period else ""
        screen.say(f"Learned {about.outcome!r} from {about.rows:,} rows of {about.source}{period}.")
        screen.say(about.economics)
    screen.say()
    if isinstance(policy, PreparedPolicy):
        rows = [line.partition(": ") for line in str(policy.plan_).splitlines()]
        screen.table(["column", "what the policy sees"], [(name, text) for name, _, text in rows])
        screen.say()
    if about is not None:
        show_strength(screen, about.effects)
        screen.say(
            f"Cost a row on the rows learned from: {about.cost:.4g}; always {about.constant:g}: "
            f"{about.constant_cost:.4g}."
        )
    screen.say(
        f"Radius {robust.radius_:.3g}, in standard deviations of the "
        f"{'outcome' if decides(robust) else 'columns'}: how far rows may shift in the worst case."
    )
    screen.say(certificate.message)
    stated = None if about is None or about.guarantee is None else about.guarantee.sentence(SHIFT)
    if stated is not None:
        screen.say(stated)
    screen.result(
        {
            "model": str(model), "estimator": type(robust).__name__, "status": robust.status_,
            "radius": float(robust.radius_),
            "certificate": asdict(certificate),
            **({} if about is None else {
                **about.figures(), "economics": about.economics, "guarantee": stated,
                "columns": [{"name": c.name, "kind": c.kind} for c in about.columns],
            }),
        }
    )  # fmt: skip
