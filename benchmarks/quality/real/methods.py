"""What the default is compared with, each as somebody would write it who knows the method."""

import warnings

import numpy as np
from sklearn.ensemble import HistGradientBoostingRegressor, RandomForestRegressor
from sklearn.linear_model import RidgeCV
from sklearn.model_selection import cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from surefoot import RobustNewsvendor
from surefoot.baselines import ERM, SAA


def surefoot(X, y, b, h, seed, new):
    return RobustNewsvendor(b, h, random_state=seed).fit(X, y).predict(new)


def robust_linear(X, y, b, h, seed, new):
    return RobustNewsvendor(b, h, nominal=None, random_state=seed).fit(X, y).predict(new)


def saa(X, y, b, h, seed, new):
    return SAA(b, h).fit(X, y).predict(new)


def l1_quantile(X, y, b, h, seed, new):
    scaler = StandardScaler().fit(X)
    return ERM(b, h, l1="auto").fit(scaler.transform(X), y).predict(scaler.transform(new))


def _with_residuals(model, X, y, b, h, new):
    """A forecast, and the quantile of its errors on rows that it had not seen."""
    errors = y - cross_val_predict(model, X, y, cv=min(5, len(y)))
    return model.fit(X, y).predict(new) + np.quantile(errors, b / (b + h))


def ridge(X, y, b, h, seed, new):
    model = make_pipeline(StandardScaler(), RidgeCV(np.geomspace(1e-2, 1e4, 25)))
    return _with_residuals(model, X, y, b, h, new)


def forest(X, y, b, h, seed, new):
    model = RandomForestRegressor(100, min_samples_leaf=3, max_features=1 / 3, random_state=seed)
    return _with_residuals(model, X, y, b, h, new)


def quantile_forest(X, y, b, h, seed, new):
    from quantile_forest import RandomForestQuantileRegressor  # noqa: PLC0415 - only this needs it

    model = RandomForestQuantileRegressor(
        n_estimators=100, min_samples_leaf=3, max_features=1 / 3, random_state=seed
    )
    return model.fit(X, y).predict(new, quantiles=[b / (b + h)]).ravel()


def lightgbm(X, y, b, h, seed, new):
    from lightgbm import LGBMRegressor  # noqa: PLC0415 - only this needs it

    model = LGBMRegressor(
        objective="quantile", alpha=b / (b + h), n_estimators=200, learning_rate=0.05, num_leaves=15,
        min_child_samples=min(20, max(3, len(y) // 10)), random_state=seed, verbosity=-1, n_jobs=1,
    )  # fmt: skip
    return model.fit(X, y).predict(new)


def boosting(X, y, b, h, seed, new):
    model = HistGradientBoostingRegressor(
        loss="quantile", quantile=b / (b + h), learning_rate=0.05, max_iter=200,
        min_samples_leaf=min(20, max(3, len(y) // 10)), random_state=seed,
    )  # fmt: skip
    return model.fit(X, y).predict(new)


METHODS = (
    saa, l1_quantile, ridge, forest, quantile_forest, lightgbm, boosting, robust_linear, surefoot,
)  # fmt: skip


def decide(method, *arguments):
    """Call a method without its warnings."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return method(*arguments)
