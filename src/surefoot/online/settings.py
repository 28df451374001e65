"""The parts of an online policy, checked, and how a state names the configuration it belongs to."""

import dataclasses
import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from surefoot.ambiguity import WassersteinBall
from surefoot.costs import Cost
from surefoot.engines.step_rules import DecayingRadius, StepRule
from surefoot.engines.stream import StreamOptions
from surefoot.exceptions import InvalidInputError
from surefoot.online.drift import Restart, Window
from surefoot.online.memory import Memory
from surefoot.policies import Policy
from surefoot.validation import check_instance, check_integer


@dataclasses.dataclass(frozen=True)
class Settings:
    """All that an online policy was told before the first sample."""

    cost: Cost
    policy: Policy
    ball: WassersteinBall
    radius: DecayingRadius | None
    step: StepRule
    drift: Restart | Window | None
    memory: Memory
    random_state: int

    def __post_init__(self) -> None:
        """Check every part by name."""
        check_instance("cost", self.cost, Cost, "a cost such as Newsvendor(1.0, 0.2)")
        check_instance("policy", self.policy, Policy, "a policy such as Linear()")
        check_instance("ball", self.ball, WassersteinBall, "a WassersteinBall")
        if isinstance(self.ball.radius, str):
            raise InvalidInputError(
                "radius of the ball must be a number on a stream, got 'auto': there are no data to "
                "choose it from; fit a model and use OnlinePolicy.from_model, or give a number."
            )
        if self.radius is not None:
            check_instance("radius", self.radius, DecayingRadius, "DecayingRadius() or None")
        check_instance("step", self.step, StepRule, "a rule such as AdaptiveStep()")
        if self.drift is not None:
            check_instance("drift", self.drift, (Restart, Window), "Restart(), Window(rows) or None")
        check_instance("memory", self.memory, Memory, "Memory(columns=..., pending=...)")
        check_integer("random_state", self.random_state, at_least=0)

    @property
    def stream_options(self) -> StreamOptions:
        """What the engines need to know."""
        return StreamOptions(
            cost=self.cost, policy=self.policy, ball=self.ball, radius=self.radius, step=self.step,
            window=0.0 if self.drift is None else float(self.drift.window),
            random_state=self.random_state,
        )  # fmt: skip

    def described(self) -> dict[str, Any]:
        """Return every option as plain values, by name."""
        return {field.name: describe(getattr(self, field.name)) for field in dataclasses.fields(self)}


def describe(value: Any) -> Any:
    """Return a part as plain values: numbers, texts, lists, and classes by name with their fields.

    Functions are named, not compared line by line.
    """
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, np.ndarray):
        value = value.tolist()
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else repr(value)
    if isinstance(value, tuple | list):
        return [describe(entry) for entry in value]
    if isinstance(value, Mapping):
        return {str(key): describe(entry) for key, entry in value.items()}
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        parts = {f.name: describe(getattr(value, f.name)) for f in dataclasses.fields(value)}
        return {"class": type(value).__name__, **parts}
    if callable(value) and hasattr(value, "__qualname__"):
        return {"function": f"{value.__module__}.{value.__qualname__}"}
    # River's own objects know the options that they were made with.
    options: dict[str, Any] = getattr(value, "_get_params", dict)()
    return {"class": type(value).__name__, **{k: describe(entry) for k, entry in options.items()}}


def refuse_difference(ours: Mapping[str, Any], theirs: Mapping[str, Any]) -> None:
    """Refuse a state whose configuration differs, naming the option."""
    for name, value in ours.items():
        if name not in theirs or theirs[name] != value:
            raise InvalidInputError(
                f"the state must come from the same {name} ({_shown(value)}), "
                f"got one with {_shown(theirs.get(name))}."
            )


def _shown(value: Any) -> str:
    if isinstance(value, Mapping) and "class" in value:
        inside = ", ".join(f"{k}={_shown(v)}" for k, v in value.items() if k != "class")
        return f"{value['class']}({inside})"
    return repr(value)
