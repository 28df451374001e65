"""Newton's method for several products under one adversary of order 2, free to move anywhere.

The multiplier is counted as what it spends, g = gamma rho^2, and the best line of a row is smoothed:

    F = g + e^2 / (4 g) + sum_i w_i tau log sum_l exp(c_il / tau),
    c_il = w_l'r_i + v_l + rho^2 ||Theta w_l||^2 / (4 g),

is convex and smooth, and no more than tau log(lines) + e above the worst case. A few steps minimise it;
then tau and e are lowered. The smoothed choices p_il are slopes of the rows, from which the certificate
proves its lower bound; a Newton step carries them along, so that what a policy could still gain against
them vanishes to first order.
"""

from typing import NamedTuple

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from surefoot.ambiguity import JointForm, JointSlopes
from surefoot.typing import FloatArray, IntArray

# The first smoothing, as a share of the cost of the best constant decisions, and the next after each.
FIRST_SMOOTHING, LOWER = 1.0, 0.2
# A run that goes on from a policy of another radius begins with less.
WARM_SMOOTHING = 0.02
# e, as a share of tau: what keeps the multiplier positive where nothing moves.
FLOOR_SHARE = 0.5
# A level is done once a step would gain no more than this share of tau, and slopes carried along it
# lose no more than this share of the mass to their limits.
CENTRED, CUT = 0.1, 1e-5
# Nothing is gained from less smoothing than this share of the cost of constant decisions.
LEAST_SMOOTHING = 1e-9
# A step that gains this share of what its slope promises is taken; the multiplier keeps a tenth.
GAINED, KEPT = 0.1, 0.9
# A step of which no more than this share gains is tried again with more damping, up to this much; then
# the level is as done as floats can tell.
SHORTEST, MOST_RIDGE = 1e-6, 1e12
# The least that is added to the diagonal, in units of it; where a step does not gain, more by a factor.
LEAST_RIDGE, MORE = 1e-13, 1e3
# Spread of a column, as a share of its size, that is rounding.
CONSTANT = 1e-12


class Step(NamedTuple):
    """A Newton step: of the parameters and of g, what it should gain, and the slopes after it.

    ``cut`` is the mass that slopes would have to take from lines that have no more.
    """

    parameters: FloatArray
    spent: float
    gain: float
    slopes: FloatArray
    cut: float


class JointNewtonRun:
    """The run of several products under one adversary, from constant decisions or from a policy."""

    def __init__(self, form: JointForm, policy: tuple[FloatArray, FloatArray] | None = None) -> None:
        self.form, self.steps, self.ridge = form, 0, LEAST_RIDGE
        self.slopes: JointSlopes | None = None
        mean = form.weights @ form.contexts
        self.centre = mean if form.intercept else np.zeros_like(mean)
        radii = np.where(form.first.movable, form.radius, 0.0)
        contexts = form.contexts - self.centre
        sizes = np.sqrt(form.weights @ contexts**2 + radii**2)
        # A column that is constant but for rounding says nothing beside an intercept.
        says = sizes > CONSTANT * np.abs(form.contexts).max(axis=0)
        contexts = np.where(says, contexts, 0.0)
        self.sizes = np.where(says, sizes, 1.0)
        constant = np.ones((len(contexts), int(form.intercept)))
        self.rows = np.hstack([contexts / self.sizes, constant])
        # rho^2 for each parameter, none for the intercept.
        self.square_radii = np.append((radii / self.sizes) ** 2, np.zeros(int(form.intercept)))
        self.fixed = form.lines.levels - form.outcomes @ form.lines.slopes.T
        self.outcome_gains = form.lines.slopes**2 @ form.inverse_kappas * form.radius**2
        start, _ = form.start()
        unit = float(self._lines(self._inner(start), 1.0)[0].max(axis=1) @ form.weights)
        unit = unit - min(form.least, 0.0) or 1.0
        self.least_smoothing = LEAST_SMOOTHING * unit
        self.at = self._inner(start if policy is None else policy)
        self.smoothing = unit * (FIRST_SMOOTHING if policy is None else WARM_SMOOTHING)
        gamma = 0.0 if policy is None else form.worst_value(*policy)[1]
        self.spent = max(gamma * form.budget, self.smoothing)

    def policy(self) -> tuple[FloatArray, FloatArray]:
        """Return (Theta, t) where the run stands."""
        theta = self.at[: len(self.sizes)] / self.sizes[:, None]
        if not self.form.intercept:
            return theta, np.zeros(theta.shape[1])
        return theta, self.at[-1] - self.centre @ theta

    def _inner(self, policy: tuple[FloatArray, FloatArray]) -> FloatArray:
        theta, decisions = policy
        own = theta * self.sizes[:, None]
        return np.vstack([own, decisions + self.centre @ theta]) if self.form.intercept else own

    def run(self, draws: IntArray) -> None:
        """Take at most one step for each entry of ``draws``, and lower the smoothing once centred."""
        for _ in draws:
            self.steps += 1
            step = self._step()
            share = self._share(step)
            if share == 0.0:
                self.ridge *= MORE
                if self.ridge > MOST_RIDGE:
                    break
                continue
            damped, self.ridge = self.ridge > LEAST_RIDGE, max(self.ridge / MORE, LEAST_RIDGE)
            self.at = self.at + share * step.parameters
            self.spent = self.spent + share * step.spent
            if step.gain <= CENTRED * self.smoothing and step.cut <= CUT and not damped:
                break
        self.slopes = JointSlopes(step.slopes)
        self.smoothing = max(LOWER * self.smoothing, self.least_smoothing)
        self.ridge = LEAST_RIDGE

    def _lines(self, at: FloatArray, spent: float) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return values of all lines (rows, lines), Theta w_l (columns, lines) and what moves gain."""
        along = at @ self.form.lines.slopes.T
        gains = (self.square_radii @ along**2 + self.outcome_gains) / (4.0 * spent)
        return self.rows @ along + self.fixed + gains, along, gains

    def _value(self, at: FloatArray, spent: float) -> float:
        """Return the smoothed worst case."""
        values, tau = self._lines(at, spent)[0], self.smoothing
        top = values.max(axis=1)
        smooth = top + tau * np.log(np.exp((values - top[:, None]) / tau).sum(axis=1))
        return float(spent + (FLOOR_SHARE * tau) ** 2 / (4.0 * spent) + self.form.weights @ smooth)

    def _share(self, step: Step) -> float:
        """Return how much of a step is taken, zero if no part of it gains."""
        share = 1.0 if step.spent >= 0.0 else min(1.0, KEPT * self.spent / -step.spent)
        value = self._value(self.at, self.spent)
        while share > SHORTEST:
            tried = self._value(self.at + share * step.parameters, self.spent + share * step.spent)
            if tried <= value - GAINED * share * step.gain:
                return share
            share *= 0.5
        return 0.0

    def _step(self) -> Step:
        """Return the Newton step from where the run stands."""
        form, spent, tau = self.form, self.spent, self.smoothing
        (values, along, gains), w = self._lines(self.at, spent), form.lines.slopes
        shares = np.exp((values - values.max(axis=1, keepdims=True)) / tau)
        shares /= shares.sum(axis=1, keepdims=True)
        masses, floor = form.weights @ shares, (FLOOR_SHARE * tau) ** 2
        second = (w * masses[:, None]).T @ w
        norm_gradient = self.square_radii[:, None] * self.at @ second / (2.0 * spent)
        gradient = np.append(
            self.rows.T @ (form.weights[:, None] * (shares @ w)) + norm_gradient,
            1.0 - floor / (4.0 * spent**2) - masses @ gains / spent,
        )
        hessian = self._spread(along, gains, shares) / tau
        count = hessian.shape[0] - 1
        k, d = self.at.shape
        blocks = hessian[:count, :count].reshape(k, d, k, d)
        for row in np.flatnonzero(self.square_radii):
            blocks[row, :, row, :] += self.square_radii[row] / (2.0 * spent) * second
        hessian[:count, count] -= norm_gradient.ravel() / spent
        hessian[count, :count] -= norm_gradient.ravel() / spent
        hessian[count, count] += 2.0 * masses @ gains / spent**2 + floor / (2.0 * spent**3)
        # What the curvature would be if every row stood between its lines: a measure for damping.
        most = np.append(np.tile(0.25 * np.ptp(w, axis=0) ** 2 / tau, k), hessian[count, count])
        step = _solved(hessian, -gradient, most, self.ridge)
        parameters, more = step[:-1].reshape(k, d), float(step[-1])
        # The slopes move with the lines: to first order nothing is left to gain against them.
        turned = parameters @ w.T
        moved = self.rows @ turned - gains * more / spent
        moved += self.square_radii @ (along * turned) / (2.0 * spent)
        moved -= (shares * moved).sum(axis=1, keepdims=True)
        slopes = shares * (1.0 + moved / tau)
        cut = float(form.weights @ np.maximum(-slopes, 0.0).sum(axis=1))
        return Step(parameters, more, float(-gradient @ step), np.maximum(slopes, 0.0), cut)

    def _spread(self, along: FloatArray, gained: FloatArray, shares: FloatArray) -> FloatArray:
        """Return how much the gradients of the lines of a row differ, on average over the rows.

        A line's gradient is that of its residual, x_i w_l', and that of its gain, one for all rows.
        """
        form, w = self.form, self.form.lines.slopes
        (k, d), count = self.at.shape, self.at.size
        gains = np.empty((len(w), count + 1))
        turned = self.square_radii[:, None] * along / (2.0 * self.spent)
        gains[:, :count] = np.einsum("kl,ld->lkd", turned, w).reshape(len(w), count)
        gains[:, count] = -gained / self.spent
        weighted = form.weights[:, None] * shares
        if len(w) > count:  # the quicker of two ways to the same
            within = shares @ gains
            spread = (gains * weighted.sum(axis=0)[:, None]).T @ gains
            spread -= (within * form.weights[:, None]).T @ within
        else:
            spread = gains.T @ (np.diag(weighted.sum(axis=0)) - shares.T @ weighted) @ gains
        mean, blocks = shares @ w, spread[:count, :count].reshape(k, d, k, d)
        for j in range(d):
            for other in range(j, d):
                apart = shares @ (w[:, j] * w[:, other]) - mean[:, j] * mean[:, other]
                product = (self.rows * (form.weights * apart)[:, None]).T @ self.rows
                blocks[:, j, :, other] += product
                if other > j:
                    blocks[:, other, :, j] += product.T
        at_mean = np.einsum("nk,nd->nkd", self.rows, mean).reshape(-1, count)
        at_line = np.einsum("kl,ld->kdl", self.rows.T @ weighted, w).reshape(count, -1)
        crossed = (at_line - at_mean.T @ weighted) @ gains
        spread[:count] += crossed
        spread[:, :count] += crossed.T
        return np.asarray(spread)


def _solved(matrix: FloatArray, right: FloatArray, most: FloatArray, ridge: float) -> FloatArray:
    """Solve a damped system whose matrix has no negative direction but for rounding."""
    while True:
        damped = matrix + np.diag(ridge * most)
        sizes = np.sqrt(np.maximum(np.diag(damped), LEAST_RIDGE * most))
        try:
            factor = cho_factor(damped / sizes[:, None] / sizes)
        except LinAlgError:
            ridge *= MORE
            continue
        return np.asarray(cho_solve(factor, right / sizes) / sizes)
