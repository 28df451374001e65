"""A small panel that tests share: two shops, four products, some of them odd."""

import numpy as np
import pytest

from surefoot import RobustNewsvendor


def panel(rows=30, shops=("north", "south"), products=(1, 2, 10), seed=0):
    """Sales with a price, a promotion and a date; rows of all series mixed."""
    pd = pytest.importorskip("pandas")  # not at the top: without extras, other tests are to be found
    rng = np.random.default_rng(seed)
    frames = []
    for shop in shops:
        for product in products:
            price = rng.uniform(1.0, 3.0, rows)
            frames.append(
                pd.DataFrame(
                    {
                        "shop": shop, "product": product,
                        "date": pd.date_range("2024-01-01", periods=rows, freq="2D").astype("datetime64[s]"),
                        "price": price, "promo": rng.choice(["no", "yes"], rows),
                    }
                ).assign(sales=20 * product**0.5 - 4 * price + rng.normal(0, 1, rows))
            )  # fmt: skip
    whole = pd.concat(frames, ignore_index=True)
    return whole.sample(frac=1.0, random_state=seed).reset_index(drop=True)


@pytest.fixture(scope="session")
def frame():
    return panel()


@pytest.fixture(scope="session")
def quick():
    """A policy that is fitted in milliseconds."""
    return RobustNewsvendor(1.0, 0.2, radius=0.1)
