"""NumPy's random stream inside compiled code: the rows that ``draw_rows`` would draw, without Python.

A problem in a batch must draw what it would draw alone, or its answer would depend on its company.
PCG64 (O'Neill 2014) is a 128-bit linear congruential generator whose output is folded and rotated.
"""

import numpy as np

from surefoot.engines.compiling import kernel

# The generator's words: state and increment, high and low; whether half an output is left, and it.
STATE_HIGH, STATE_LOW, STEP_HIGH, STEP_LOW, HAS_HALF, HALF = range(6)
MULTIPLIER_HIGH, MULTIPLIER_LOW = np.uint64(2549297995355413924), np.uint64(4865540595714422341)
WORD, LOW_HALF = np.uint64(32), np.uint64(0xFFFFFFFF)
ONE, SIXTY_FOUR = np.uint64(1), np.uint64(64)
FOLD_SHIFT, DOUBLE_SHIFT = np.uint64(58), np.uint64(11)


def generator_words(rng: np.random.Generator) -> "np.ndarray[tuple[int], np.dtype[np.uint64]]":
    """Return where a PCG64 generator stands, as the kernels read it."""
    state = rng.bit_generator.state
    word = (1 << 64) - 1
    place, step = state["state"]["state"], state["state"]["inc"]
    return np.array(
        [place >> 64, place & word, step >> 64, step & word, state["has_uint32"], state["uinteger"]],
        dtype=np.uint64,
    )


@kernel()
def _product(a, b):
    """Return the high and the low word of a product of two words."""
    a_low, a_high, b_low, b_high = a & LOW_HALF, a >> WORD, b & LOW_HALF, b >> WORD
    low, cross, back = a_low * b_low, a_high * b_low, a_low * b_high
    middle = (low >> WORD) + (cross & LOW_HALF) + (back & LOW_HALF)
    high = a_high * b_high + (cross >> WORD) + (back >> WORD) + (middle >> WORD)
    return high, a * b


@kernel()
def next_word(words):
    """Step the generator and return 64 random bits."""
    high, low = words[STATE_HIGH], words[STATE_LOW]
    carried, product = _product(low, MULTIPLIER_LOW)
    top = carried + high * MULTIPLIER_LOW + low * MULTIPLIER_HIGH
    low = product + words[STEP_LOW]
    high = top + words[STEP_HIGH] + (ONE if low < product else np.uint64(0))
    words[STATE_HIGH], words[STATE_LOW] = high, low
    folded, turn = high ^ low, high >> FOLD_SHIFT
    return (folded >> turn) | (folded << ((SIXTY_FOUR - turn) & np.uint64(63)))


@kernel()
def _next_half(words):
    """Return 32 random bits; each output of the generator serves twice."""
    if words[HAS_HALF] == ONE:
        words[HAS_HALF] = np.uint64(0)
        return words[HALF]
    word = next_word(words)
    words[HAS_HALF], words[HALF] = ONE, word >> WORD
    return word & LOW_HALF


@kernel()
def up_to(words, most):
    """Return a random whole number from 0 to ``most``: bits under its mask, until they fit."""
    mask = most
    for shift in (1, 2, 4, 8, 16):
        mask |= mask >> np.uint64(shift)
    value = _next_half(words) & mask
    while value > most:
        value = _next_half(words) & mask
    return value


@kernel()
def drawn_rows(words, weights, count):
    """Return so many row numbers, the same as ``draw_rows`` with a generator that stands here."""
    n = len(weights)
    if weights.max() - weights.min() <= 1e-12 * weights[0]:
        passes = -(-count // n)
        draws = np.empty(passes * n, dtype=np.int64)
        for first in range(0, passes * n, n):
            for i in range(n):
                draws[first + i] = i
            for i in range(n - 1, 0, -1):
                j = np.int64(up_to(words, np.uint64(i)))
                kept = draws[first + i]
                draws[first + i] = draws[first + j]
                draws[first + j] = kept
        return draws[:count]
    draws = np.empty(count, dtype=np.int64)
    covered = np.cumsum(weights)
    covered /= covered[-1]
    for k in range(count):
        level = np.float64(next_word(words) >> DOUBLE_SHIFT) * (1.0 / 9007199254740992.0)
        draws[k] = np.searchsorted(covered, level, side="right")
    return draws
