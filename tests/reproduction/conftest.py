"""A suite of small cells, and results made up by hand."""

import pytest

from reproduction import Suite, SyntheticSet, chosen_methods
from reproduction.result import Result

NAMES = ("ours-fixed-2", "saa", "erm-vertex", "oracle")


def _small_suite(repetitions=2, names=NAMES):
    data = tuple(SyntheticSet(n, 4, 1.0, test=60) for n in (8, 12))
    return Suite(data, chosen_methods(names), repetitions)


def _made_up(method, cost, *, n=10, s=100, variance=1.0, repetition=0, **changes):
    key = (
        f"synthetic/positive/uniform/s={s}/variance={variance:g}/n={n}/{method}/repetition={repetition}"
    )
    values = {
        "key": key, "kind": "synthetic", "n": n, "s": s, "noise_variance": variance,
        "contexts": "uniform", "coefficients": "positive", "product": None, "method": method,
        "repetition": repetition, "status": "done", "cost": cost, "fit_seconds": 0.01,
        "predict_seconds": 0.002, "gap": None, "radius": None, "note": "", "error": "",
        "machine": "a machine", "versions": "surefoot 0", "finished": "2026-01-01T00:00:00+00:00",
    }  # fmt: skip
    return Result(**{**values, **changes})


def _numbers(results):
    """What must not depend on how, where and in which order cells were run."""
    return {r.key: (r.status, r.cost, r.gap, r.radius, r.note, r.error) for r in results}


@pytest.fixture(scope="session")
def small_suite():
    return _small_suite


@pytest.fixture(scope="session")
def made_up():
    return _made_up


@pytest.fixture(scope="session")
def numbers():
    return _numbers
