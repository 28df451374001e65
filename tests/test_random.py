import itertools
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import surefoot
from surefoot.random import rng_for
from tests.global_randomness import left_alone

repeatable = settings(derandomize=True, deadline=None, suppress_health_check=[HealthCheck.too_slow])
names = st.lists(st.text("ab01-", max_size=4), min_size=1, max_size=3)


def head(rng):
    return tuple(rng.bit_generator.random_raw(4).tolist())


@repeatable
@given(st.integers(0, 2**70), names)
def test_the_same_names_give_the_same_stream(seed, path):
    np.testing.assert_array_equal(
        rng_for(seed, *path).standard_normal(8), rng_for(seed, *path).standard_normal(8)
    )


@repeatable
@given(st.tuples(st.integers(0, 2**40), names), st.tuples(st.integers(0, 2**40), names))
def test_other_seeds_or_names_give_other_streams(one, other):
    (seed, path), (seed2, path2) = one, other
    same = seed == seed2 and path == path2
    assert (head(rng_for(seed, *path)) == head(rng_for(seed2, *path2))) is same


def test_names_count_in_order_and_do_not_run_together():
    paths = [("ab", "c"), ("a", "bc"), ("abc",), ("c", "ab"), ("ab", "c", ""), ("a", "b", "c")]
    heads = [head(rng_for(0, *path)) for path in paths]
    assert len(set(heads)) == len(paths)


def test_names_may_be_anything_with_a_stable_text():
    assert head(rng_for(0, "fold", 3)) == head(rng_for(0, "fold", "3"))
    assert head(rng_for(0, ("a", 1))) != head(rng_for(0, ("a", 2)))


def test_streams_are_independent_of_each_other():
    draws = np.array([rng_for(0, "data", k).standard_normal(4000) for k in range(8)])
    draws = np.vstack([draws, [rng_for(seed, "data", 0).standard_normal(4000) for seed in range(1, 5)]])
    correlations = np.corrcoef(draws)[np.triu_indices(len(draws), 1)]
    assert np.abs(correlations).max() < 5 / np.sqrt(4000)
    assert len(np.unique(draws)) == draws.size


def test_drawing_from_one_stream_leaves_another_where_it_was():
    expected = rng_for(0, "b").random(6)
    a, b = rng_for(0, "a"), rng_for(0, "b")
    drawn = [b.random() for _ in range(6) if a.random(100) is not None]
    np.testing.assert_array_equal(drawn, expected)


def test_the_global_generators_are_neither_read_nor_moved():
    streams = []
    for seed in (1, 2):
        with left_alone(seed):
            streams.append(head(rng_for(0, "data")))
    assert streams[0] == streams[1]


def test_the_same_stream_in_another_process():
    code = (
        "from surefoot.random import rng_for;"
        "print(*rng_for(7, 'data', 3, ('x', 1.5)).bit_generator.random_raw(4))"
    )
    source = str(Path(surefoot.__file__).parents[1])
    for hash_seed in ("1", "2"):
        env = {**os.environ, "PYTHONPATH": source, "PYTHONHASHSEED": hash_seed}
        run = subprocess.run(
            [sys.executable, "-c", code], env=env, capture_output=True, text=True, check=True
        )
        assert tuple(map(int, run.stdout.split())) == head(rng_for(7, "data", 3, ("x", 1.5)))


def test_streams_never_change_between_releases():
    # NumPy promises that PCG64 and SeedSequence stay as they are; so must the names' digest.
    assert head(rng_for(0, "data", 3)) == (
        2075426489190242451,
        7905773741407305024,
        10904613855545881577,
        11048796958345840394,
    )


@pytest.mark.parametrize(("seed", "error"), [(-1, ValueError), (1.5, TypeError), (None, TypeError)])
def test_unusable_seeds_are_refused(seed, error):
    with pytest.raises(error):
        rng_for(seed, "data")


def test_a_grid_of_cells_has_distinct_streams():
    cells = list(itertools.product(range(5), ("data", "noise"), (10, 100), range(10)))
    assert len({head(rng_for(seed, *cell)) for seed, *cell in cells}) == len(cells)
