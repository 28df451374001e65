"""The compiled stream is NumPy's: the same rows as ``draw_rows``, draw for draw."""

import numpy as np
import pytest

from surefoot.engines.affine_proof import draw_rows
from surefoot.engines.row_draws import drawn_rows, generator_words, next_word


@pytest.mark.parametrize("seed", [0, 1, 2**40])
@pytest.mark.parametrize("n", [1, 2, 3, 7, 64, 100, 300])
@pytest.mark.parametrize("equal", [True, False])
def test_rows_are_those_of_numpy(seed, n, equal):
    masses = np.ones(n) if equal else np.random.default_rng(n).random(n) + 0.01
    weights = masses / masses.sum()
    rng, words = np.random.default_rng(seed), generator_words(np.random.default_rng(seed))
    for count in (1, 250, 17, 2 * n):  # one stream, block after block
        np.testing.assert_array_equal(drawn_rows(words, weights, count), draw_rows(weights, rng, count))
    np.testing.assert_array_equal(words[:5], generator_words(rng)[:5])


def test_words_are_those_of_numpy():
    rng, words = np.random.default_rng(3), generator_words(np.random.default_rng(3))
    assert [int(next_word(words)) for _ in range(1000)] == rng.bit_generator.random_raw(1000).tolist()
