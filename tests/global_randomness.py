"""The global generators belong to the user: nobody reads them, and nobody moves them."""

import random
from contextlib import contextmanager

import numpy as np


@contextmanager
def left_alone(seed=None):
    """Check that what is done inside moves neither global generator, and put them back.

    A seed is what they start from.
    """
    saved = np.random.get_state(), random.getstate()
    try:
        if seed is not None:
            np.random.seed(seed)
            random.seed(seed)
        before = np.random.get_state(), random.getstate()
        yield
        after = np.random.get_state(), random.getstate()
        np.testing.assert_equal(after[0], before[0])
        assert after[1] == before[1]
    finally:
        np.random.set_state(saved[0])
        random.setstate(saved[1])
