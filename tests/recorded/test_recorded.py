"""A change of the house changes no decision: what was recorded before it comes out again."""

import numpy as np
import pytest

from tests.recorded.cases import KINDS, RECORD, cases, decisions, processor

# Relative to the largest decision of a case. Kernels may add up in another order, and that is all.
TOLERANCE = 1e-9
# On these beside the one that it was recorded on all decisions were the same to 1e-14.
ALIKE = ("AMD EPYC",)


@pytest.fixture(scope="module")
def recorded():
    with np.load(RECORD) as found:
        return dict(found)


@pytest.fixture(scope="module")
def alike(recorded):
    """Skip on other processors: a run that stops at a gap may there stop one look later."""
    made = str(recorded["processor"])
    if processor() not in (made, *ALIKE):
        pytest.skip(f"recorded on another kind of processor: {made}")


def test_two_hundred_problems_are_recorded(recorded):
    named = {name for kind in KINDS for name in cases(kind)}
    assert named | {"processor"} == set(recorded)
    assert len(recorded) >= 200


SLOW = pytest.param("general", marks=pytest.mark.nightly)


@pytest.mark.usefixtures("alike")
@pytest.mark.parametrize("kind", [*(kind for kind in KINDS if kind != "general"), SLOW])
def test_decisions_are_as_recorded(kind, recorded):
    for name, make in cases(kind).items():
        before, now = recorded[name], decisions(make)
        assert now.shape == before.shape, name
        far = np.abs(now - before).max() / np.abs(before).max()
        assert far <= TOLERANCE, f"{name}: decisions differ by {far:.2g} of their size"
