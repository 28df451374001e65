"""Pictures of the adversary, of the price of robustness and of convergence.

Every function draws into the axes that it is given, or makes a figure of its own, and returns the
axes. matplotlib is loaded on the first call: ``pip install "surefoot[cli]"``.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from surefoot.diagnostics.adversary_path import AdversaryPath
from surefoot.diagnostics.price import CostCurve, PriceOfRobustness
from surefoot.estimators.augmentation import Augmentation
from surefoot.exceptions import InvalidInputError
from surefoot.random import rng_for
from surefoot.tracing import load_extra
from surefoot.typing import FloatArray
from surefoot.validation import check_instance, check_integer

# Colours that the colour-blind tell apart; the nominal is grey and the adversary orange everywhere.
GREY, BLUE, ORANGE, GREEN = "#8a8a8a", "#0060a8", "#d55e00", "#009e73"
_TEXT = {"font.size": 9, "axes.titlesize": 9.5, "font.family": "sans-serif"}
_TITLE = {"loc": "left", "fontsize": 9.5}
# The typical arrow takes this share of the picture; shorter moves are drawn longer, and say so.
ARROW_SHARE = 0.06
# Runs this many times as long as their first block are drawn on a log scale.
LONG_RUN = 20
# A gap of zero has no place on a log scale; this one stands in for it.
SMALLEST_GAP = 1e-12


def _axes(axes: Any, size: tuple[float, float]) -> Any:
    """Return the axes given, or those of a new figure."""
    return _panels(axes, 1, size)[0]


def _panels(axes: Any, count: int, size: tuple[float, float]) -> list[Any]:
    """Return so many axes: those given, or those of a new figure with at most four in a row."""
    needed = 'Pictures need matplotlib: run pip install "surefoot[cli]".'
    plt = load_extra("matplotlib.pyplot", needed)
    if axes is None:
        across = min(count, 4)
        down = -(-count // across)
        with plt.rc_context(_TEXT):
            _, grid = plt.subplots(
                down, across, figsize=(size[0] * across, size[1] * down), squeeze=False,
                layout="constrained",
            )  # fmt: skip
        flat = list(grid.ravel())
        for unused in flat[count:]:
            unused.set_visible(False)
        flat = flat[:count]
    else:
        flat = list(np.atleast_1d(np.asarray(axes, dtype=object)).ravel())
        if len(flat) != count:
            raise InvalidInputError(f"axes must be {count} axes, got {len(flat)}.")
    for one in flat:
        one.spines[["top", "right"]].set_visible(False)
        one.grid(True, which="major", axis="y", color="#e4e4e4", linewidth=0.6)
        one.set_axisbelow(True)
        one.tick_params(length=3, color="#777777")
    return flat


def plot_column(
    augmentation: Augmentation, column: str | int, axes: Any = None, *, bins: int = 12
) -> Any:
    """Draw one column's distribution before and after the adversary moved it."""
    check_instance("augmentation", augmentation, Augmentation, "what model.augmentation() returns")
    histogram = augmentation.histogram(column, bins)
    axes = _axes(axes, (4.4, 3.0))
    axes.stairs(histogram.before, histogram.edges, fill=True, color=GREY, alpha=0.45, label="data")
    axes.stairs(histogram.after, histogram.edges, color=ORANGE, linewidth=1.8, label="augmented")
    shift = augmentation.column_shifts[augmentation.position(column)]
    axes.axvline(shift.before, color="#555555", linewidth=1.0, linestyle=(0, (4, 2)))
    axes.axvline(shift.after, color=ORANGE, linewidth=1.0, linestyle=(0, (4, 2)))
    share = f"{100 * shift.share:.0f} % of the transport" if shift.movable else "does not move"
    axes.set_title(f"{histogram.name}: {share}", **_TITLE)
    axes.set_ylabel("share of mass")
    axes.legend(frameon=False, fontsize=8)
    return axes


def plot_columns(
    augmentation: Augmentation,
    columns: Sequence[str | int] | None = None,
    axes: Any = None,
    *,
    bins: int = 12,
) -> Any:
    """Draw columns before and after, side by side; None takes the columns that are used most.

    Returns one axes for each column.
    """
    check_instance("augmentation", augmentation, Augmentation, "what model.augmentation() returns")
    chosen = columns
    if isinstance(chosen, str) or (chosen is not None and len(chosen) == 0):
        raise InvalidInputError(f"columns must be a list of columns or None, got {columns!r}.")
    if chosen is None:
        chosen = [column.name for column in augmentation.most_used(4)] or [0]
    panels = _panels(axes, len(chosen), (3.1, 2.7))
    for column, one in zip(chosen, panels, strict=True):
        plot_column(augmentation, column, one, bins=bins)
    for one in panels[1:]:
        one.set_ylabel("")
        one.get_legend().remove()
    return np.array(panels, dtype=object)


def leading_directions(augmentation: Augmentation) -> tuple[FloatArray, FloatArray]:
    """Return the first two principal components of the scaled contexts and their shares of variance.

    Shapes (columns, 2) and (2,). With a single column the second one is zero.
    """
    check_instance("augmentation", augmentation, Augmentation, "what model.augmentation() returns")
    mass, scaled = augmentation.mass, augmentation.contexts_before / augmentation.scale
    centred = np.sqrt(mass)[:, None] * (scaled - mass @ scaled)
    _, sizes, axes = np.linalg.svd(centred, full_matrices=False)
    directions, shares = np.zeros((scaled.shape[1], 2)), np.zeros(2)
    count = min(2, len(sizes))
    directions[:, :count] = axes[:count].T
    # The sign of a component means nothing; its largest entry is made positive.
    largest = np.abs(directions).argmax(axis=0)
    directions *= np.where(directions[largest, [0, 1]] < 0.0, -1.0, 1.0)
    total = float((sizes**2).sum())
    if total > 0.0:
        shares[:count] = sizes[:count] ** 2 / total
    return directions, shares


def plot_moves(augmentation: Augmentation, axes: Any = None, *, arrows: int = 150) -> Any:
    """Draw where samples go, in the two leading directions of the scaled contexts.

    Orange arrows raise the decision and blue ones lower it. At most ``arrows`` samples are shown,
    drawn by their mass. The title says which part of the squared moves lies in this plane, and by
    how much arrows that would be too short to see are stretched.
    """
    check_integer("arrows", arrows, at_least=1)
    directions, shares = leading_directions(augmentation)
    mass, scale = augmentation.mass, augmentation.scale
    centre = mass @ (augmentation.contexts_before / scale)
    before = (augmentation.contexts_before / scale - centre) @ directions
    moves = augmentation.moves @ directions
    all_moves = float(mass @ (augmentation.moves**2).sum(axis=1))
    seen = float(mass @ (moves**2).sum(axis=1)) / all_moves if all_moves > 0.0 else 0.0
    shown = np.arange(len(mass))
    if len(mass) > arrows:
        rng = rng_for(0, "arrows")
        shown = np.sort(rng.choice(len(mass), arrows, replace=False, p=mass / mass.sum()))
    change = (
        (augmentation.decisions - augmentation.decisions_before).reshape(len(mass), -1).mean(axis=1)
    )
    stretch = _stretch(before[shown], moves[shown])
    axes = _axes(axes, (5.2, 4.4))
    axes.scatter(*before[shown].T, s=9, color=GREY, linewidths=0, zorder=2)
    for label, colour, kept in (
        ("raises the decision", ORANGE, change[shown] > 0.0),
        ("lowers the decision", BLUE, change[shown] < 0.0),
    ):
        arrows = shown[kept]
        axes.quiver(
            *before[arrows].T, *(stretch * moves[arrows]).T, angles="xy", scale_units="xy", scale=1.0,
            color=colour, width=0.004, headwidth=4, headlength=5, zorder=3, label=label,
        )  # fmt: skip
    for k, name in enumerate(("x", "y")):
        loadings = np.argsort(-np.abs(directions[:, k]))[:2]
        named = ", ".join(augmentation.columns[j] for j in loadings if directions[j, k] != 0.0)
        getattr(axes, f"set_{name}label")(
            f"direction {k + 1} ({100 * shares[k]:.0f} % of the variance; mostly {named})"
        )
    longer = f"; arrows drawn {stretch:.2g} times as long" if stretch > 1.0 else ""
    axes.set_title(f"{100 * seen:.0f} % of the transport lies in this plane{longer}", **_TITLE)
    axes.update_datalim((before + stretch * moves)[shown])  # arrows stay inside the frame
    axes.margins(0.05)
    axes.autoscale_view()
    axes.set_aspect("equal", adjustable="datalim")
    axes.legend(frameon=False, fontsize=8)
    return axes


def _stretch(before: FloatArray, moves: FloatArray) -> float:
    """Return how much longer arrows must be drawn to be seen, at least one."""
    width = float(np.ptp(before, axis=0).max(initial=0.0))
    lengths = np.linalg.norm(moves, axis=1)
    typical = float(np.median(lengths[lengths > 0.0])) if (lengths > 0.0).any() else 0.0
    needed = ARROW_SHARE * width / typical if typical > 0.0 else 1.0
    return max(1.0, float(np.floor(needed)))


def plot_columns_used(augmentation: Augmentation, axes: Any = None, *, count: int = 10) -> Any:
    """Draw the columns that the adversary uses most, as shares of the transport cost.

    The text beside a bar is the root mean square of the moves, in standard deviations.
    """
    check_instance("augmentation", augmentation, Augmentation, "what model.augmentation() returns")
    used = augmentation.most_used(count)[::-1]
    axes = _axes(axes, (4.8, 0.6 + 0.27 * max(len(used), 3)))
    axes.grid(False)
    axes.barh([c.name for c in used], [100 * c.share for c in used], color=ORANGE, height=0.65)
    for place, column in enumerate(used):
        text = f" moves by {column.typical_move:.2f} sd"
        axes.text(100 * column.share, place, text, va="center", fontsize=7.5, color="#444444")
    axes.set_xlim(0.0, 1.35 * max((100 * column.share for column in used), default=1.0))
    axes.set_xticks([tick for tick in axes.get_xticks() if tick <= 100.0])
    axes.set_xlabel("share of the transport cost, %")
    axes.tick_params(axis="y", length=0)
    if augmentation.outcome_share > 0.0:
        axes.set_title(f"outcomes take {100 * augmentation.outcome_share:.0f} %", **_TITLE)
    return axes


def plot_price(price: PriceOfRobustness, axes: Any = None) -> Any:
    """Draw nominal, worst-case and realised cost against the radius, fixed and refitted."""
    check_instance("price", price, PriceOfRobustness, "what price_of_robustness returns")
    axes = _axes(axes, (6.0, 4.0))
    curves: list[tuple[str, CostCurve, Any, float]] = [("policy as fitted", price.fixed, "--", 1.3)]
    if price.refitted is not None:
        curves.append(("refitted at each radius", price.refitted, "-", 2.0))
    for name, curve, line, width in curves:
        for label, values, colour in (
            ("worst case", curve.worst_case, ORANGE),
            ("new rows", curve.realised, BLUE),
            ("data", curve.nominal, GREY),
        ):
            if values is not None:
                axes.plot(
                    price.radii, values, color=colour, linestyle=line, linewidth=width,
                    label=f"{label}, {name}",
                )  # fmt: skip
    axes.axvline(price.fitted_radius, color="#555555", linewidth=0.9, linestyle=(0, (1, 2)))
    # The fixed policy's worst case grows without end; the other curves decide the height.
    last = curves[-1][1]
    shown = [values for values in (last.nominal, last.worst_case, last.realised) if values is not None]
    low, high = min(map(np.min, shown)), max(map(np.max, shown))
    room = 0.12 * (high - low) or 0.1 * abs(high) or 1.0
    axes.set_ylim(low - room, high + 2.0 * room)
    axes.set_xlim(0.0, float(price.radii[-1]) or 1.0)
    axes.set(xlabel="radius (dotted: the fitted one)", ylabel="expected cost")
    axes.legend(frameon=False, fontsize=8)
    return axes


def plot_convergence(path: AdversaryPath, axes: Any = None) -> Any:
    """Draw bounds on the best worst case, their gap and the multiplier against steps: three axes."""
    check_instance("path", path, AdversaryPath, "what adversary_path returns")
    steps = np.array([progress.steps for progress in path.history])
    objective, gap, multiplier = panels = _panels(axes, 3, (3.5, 2.9))
    objective.plot(
        steps, [p.upper for p in path.history], color=ORANGE, marker="o", markersize=3,
        label="worst case of the policy",
    )  # fmt: skip
    lower = np.array([progress.lower for progress in path.history])
    if np.isfinite(lower).all():
        label = "no policy is below"
        objective.plot(steps, lower, color=BLUE, marker="o", markersize=3, label=label)
    objective.set_ylabel("worst-case expected cost")
    objective.legend(frameon=False, fontsize=8)
    gaps = np.array([progress.gap for progress in path.history])
    known = np.isfinite(gaps)
    gap.plot(steps[known], np.maximum(gaps[known], SMALLEST_GAP), color=BLUE, marker="o", markersize=3)
    gap.set_yscale("log")
    gap.set_ylabel("gap")
    for j, values in enumerate(path.multipliers.T):
        name = f"product {j}" if path.multipliers.shape[1] > 1 else None
        multiplier.plot(path.steps, values, marker="o", markersize=3, label=name,
                        color=GREEN if name is None else None)  # fmt: skip
    if path.multipliers.shape[1] > 1:
        multiplier.legend(frameon=False, fontsize=8)
    multiplier.set_ylabel("multiplier gamma")
    known_steps = steps[steps > 0]
    for one in panels:
        if len(known_steps) and known_steps.max() > LONG_RUN * known_steps.min():
            one.set_xscale("symlog", linthresh=int(known_steps.min()), linscale=0.5)
            one.set_xlim(-0.2 * known_steps.min(), 1.4 * known_steps.max())
        one.set_xlabel("steps")
    return np.array(panels, dtype=object)


def plot_rates(
    curves: Mapping[str, FloatArray],
    axes: Any = None,
    *,
    theory: float = -0.5,
    smallest: float = SMALLEST_GAP,
) -> Any:
    """Draw gaps against steps or rows on log axes, with lines of the slope that theory promises.

    Parameters
    ----------
    curves
        By name: sizes, gaps, and the lower and upper ends of a band, shape (4, points).
    theory
        The slope of the dotted lines.
    smallest
        Gaps below are not measured, and left out.
    """
    axes = _axes(axes, (6.0, 4.2))
    colours = (GREY, "#444444", BLUE, GREEN, ORANGE, "#b8548f")
    markers = ("s", "D", "^", "o", "v", "P")
    highest, lowest = 0.0, float("inf")
    for k, (name, curve) in enumerate(curves.items()):
        sizes, gaps, low, high = curve[:, curve[1] > smallest]
        colour = colours[k % len(colours)]
        axes.plot(
            sizes, gaps, color=colour, marker=markers[k % len(markers)], markersize=4, linewidth=1.6,
            label=name,
        )  # fmt: skip
        axes.fill_between(sizes, np.maximum(low, smallest), high, color=colour, alpha=0.13, linewidth=0)
        highest, lowest = max(highest, float(gaps.max())), min(lowest, float(gaps.min()))
    ends = np.array(
        [min(c[0].min() for c in curves.values()), max(c[0].max() for c in curves.values())]
    )
    for power, start in enumerate(np.geomspace(highest, lowest, 6)[1:-1]):
        label = f"slope {theory:g}" if power == 0 else None
        line = start * (ends / ends[0]) ** theory
        axes.plot(ends, line, color="#999999", linewidth=0.8, linestyle=(0, (1, 2)), label=label)
    axes.set(xscale="log", yscale="log")
    axes.set_ylim(0.6 * lowest, 1.7 * highest)
    axes.legend(frameon=False, fontsize=8)
    return axes
