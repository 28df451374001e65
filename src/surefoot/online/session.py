"""A policy that answers messages: who asks gets a decision, who tells is learned from."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from surefoot.exceptions import InvalidInputError, SurefootError
from surefoot.online.messages import Context, Message
from surefoot.online.policy import OnlinePolicy


class Session:
    """Takes messages in order and remembers which id stands for which decision.

    - A context without an outcome is decided on. Its id is the one it brings, or its line number.
    - An outcome with the id of such a decision is learned with the context that was decided on,
      whatever else the line says.
    - A context and an outcome together are learned.

    As many decisions wait for their outcome as the policy's ``Memory(pending=...)`` allows; the oldest
    makes room. A message that is refused changes nothing.

    Parameters
    ----------
    policy
        Decides and learns.
    prepare
        Turns the context of a message into what the policy sees; None leaves it as it is.

    Examples
    --------
    >>> from surefoot.costs import Newsvendor
    >>> session = Session(OnlinePolicy(Newsvendor(1.0, 0.2)))
    >>> session.take(Message(1, None, {"heat": 20.0}, 5.0))
    >>> session.take(Message(2, "mon", {"heat": 21.0}, None))
    {'id': 'mon', 'decision': 5.0}
    >>> session.take(Message(3, "mon", {}, 6.0))
    >>> session.decided, session.learned
    (1, 2)
    """

    def __init__(
        self, policy: OnlinePolicy, prepare: Callable[[Context], Context] | None = None
    ) -> None:
        self.policy, self._prepare = policy, prepare
        self.decided = self.learned = 0
        self._waiting: dict[str, int] = {}

    def take(self, message: Message) -> dict[str, Any] | None:
        """Return the answer to a question; learn from anything else and return None."""
        try:
            if message.outcome is None:
                return self._decide(message)
            self._learn(message, message.outcome)
        except SurefootError as error:
            text = str(error)
            if text.startswith(f"line {message.line}: "):
                raise
            raise InvalidInputError(f"line {message.line}: {text}") from error
        return None

    def _decide(self, message: Message) -> dict[str, Any]:
        if not message.context:
            raise InvalidInputError("a line must have a context or an outcome, got neither.")
        name = message.line if message.id is None else message.id
        if str(name) in self._waiting:
            raise InvalidInputError(f"id must be new until its outcome came, got {name!r} again.")
        decision, number = self.policy.decide_one(self._context(message), tracked=True)
        if len(self._waiting) >= self.policy.settings.memory.pending:
            del self._waiting[next(iter(self._waiting))]  # the policy dropped the same one
        self._waiting[str(name)] = number
        self.decided += 1
        plain = decision.tolist() if isinstance(decision, np.ndarray) else decision
        return {"id": name, "decision": plain}

    def _context(self, message: Message) -> Context:
        return message.context if self._prepare is None else self._prepare(message.context)

    def _learn(self, message: Message, outcome: float) -> None:
        name = str(message.id)
        if message.id is not None and name in self._waiting:
            self.policy.learn_one(y=outcome, id=self._waiting[name])
            del self._waiting[name]
        elif message.context:
            self.policy.learn_one(self._context(message), outcome)
        elif message.id is None:
            raise InvalidInputError("an outcome must come with a context or an id, got neither.")
        else:
            raise InvalidInputError(
                f"id must be that of a decision whose outcome has not come, got {message.id!r}."
            )
        self.learned += 1

    def state(self) -> dict[str, Any]:
        """Return the policy's state and what waits for an outcome."""
        return {
            "policy": self.policy.state_dict(),
            "waiting": dict(self._waiting),
            "decided": self.decided,
            "learned": self.learned,
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from a state; one of another configuration is refused by name."""
        self.policy.load_state_dict(state["policy"])
        self._waiting = dict(state["waiting"])
        self.decided, self.learned = int(state["decided"]), int(state["learned"])
