"""Surefoot itself, called as its peers are."""

from functools import partial

from worker import BACKORDER, HOLDING, serve

from surefoot import RobustNewsvendor


def fit(X, y, radius, order=2, intercept=True):
    radius = "auto" if radius is None else radius
    model = RobustNewsvendor(
        BACKORDER, HOLDING, radius=radius, order=order, intercept=intercept, nominal=None
    ).fit(X, y)
    return model.predict


if __name__ == "__main__":
    serve({
        "order 2": fit,
        "order 1": partial(fit, order=1),
        "order 2, no intercept": partial(fit, intercept=False),
    })  # fmt: skip
