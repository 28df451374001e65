"""What scikit-learn users expect of an estimator beyond fit and predict."""

from collections import defaultdict
from dataclasses import fields, is_dataclass, replace
from functools import cache
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from surefoot.exceptions import InvalidInputError
from surefoot.nominals import Nominal
from surefoot.policies import Linear, LinearParameters, Policy, Select
from surefoot.typing import FloatArray
from surefoot.validation import check_integer

DOCUMENTATION = "https://surefoot.github.io/surefoot"


class NestedParameters(BaseEstimator):
    """Parameters of parts by their names (``ball__radius``), and a link to the documentation.

    Parts such as a ``WassersteinBall`` are frozen: setting one of their parameters puts a new part in
    the place of the old one.
    """

    _doc_link_module = "surefoot"
    _doc_link_template = f"{DOCUMENTATION}/api/{{page}}.html"

    def _doc_link_url_param_generator(self) -> dict[str, str]:
        """Return the page of the class, which is named by the folder that exports it."""
        folder = type(self).__module__.rpartition(".")[0]
        return {"page": f"{folder}.{type(self).__name__}"}

    @classmethod
    def _get_param_names(cls) -> list[str]:
        """Return what scikit-learn reads from the constructor's signature, read once for each class."""
        kind: Any = cls
        return list(_parameter_names(kind))

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters; with ``deep`` also those of parts, as ``part__parameter``."""
        parameters: dict[str, Any] = super().get_params(deep=deep)
        if deep:
            for name, value in super().get_params(deep=False).items():
                parameters |= _part_parameters(name, value)
        return parameters

    def set_params(self, **params: Any) -> Self:
        """Set parameters by name; ``part__parameter`` replaces a part by one with that parameter."""
        known = super().get_params(deep=False)
        plain: dict[str, Any] = {}
        nested: dict[str, dict[str, Any]] = defaultdict(dict)
        for key, value in params.items():
            name, _, rest = key.partition("__")
            given = params.get(name, known.get(name))
            if rest and name in known and not hasattr(given, "set_params"):
                nested[name][rest] = value
            else:
                plain[key] = value
        super().set_params(**plain)
        for name, changes in nested.items():
            setattr(self, name, _changed(name, getattr(self, name), changes))
        return self


@cache
def _parameter_names(kind: Any) -> tuple[str, ...]:
    return tuple(BaseEstimator._get_param_names.__func__(kind))


def _is_part(value: Any) -> bool:
    """Whether a value is a part of a problem. A nominal holds rows, which are no parameters."""
    return is_dataclass(value) and not isinstance(value, type | Nominal)


def _part_parameters(name: str, value: Any) -> dict[str, Any]:
    """Return the parameters of a part and of the parts in it, by their nested names."""
    parameters: dict[str, Any] = {}
    if _is_part(value):
        for field in fields(value):
            if field.init:
                key, inner = f"{name}__{field.name}", getattr(value, field.name)
                parameters |= {key: inner} | _part_parameters(key, inner)
    return parameters


def _changed(name: str, part: Any, changes: dict[str, Any]) -> Any:
    """Return a part with other parameters, also in the parts in it."""
    if not _is_part(part):
        raise InvalidInputError(
            f"{name}__{next(iter(changes))} needs {name} to be a part with parameters, such as "
            f"WassersteinBall(0.1), got {part!r}: set {name} first."
        )
    allowed = {field.name: getattr(part, field.name) for field in fields(part) if field.init}
    nested: dict[str, dict[str, Any]] = defaultdict(dict)
    plain: dict[str, Any] = {}
    for key, value in changes.items():
        inner, _, rest = key.partition("__")
        if inner not in allowed:
            raise InvalidInputError(
                f"{type(part).__name__} has the parameters {', '.join(allowed)}, got {name}__{key}."
            )
        if rest:
            nested[inner][rest] = value
        else:
            plain[inner] = value
    part = replace(part, **plain)
    for inner, deeper in nested.items():
        changed = _changed(f"{name}__{inner}", getattr(part, inner), deeper)
        part = replace(part, **{inner: changed})
    return part


class LinearCoefficients:
    """``coef_`` and ``intercept_`` of policies that are linear, and no such attribute of others."""

    parameters_: Any
    _single: bool

    @property
    def coef_(self) -> FloatArray:
        """One number for each feature, or a row of them for each product.

        The decision is ``coef_ @ x + intercept_``, in the units of X. A policy that is not linear has
        no such attribute, and the message says why.
        """
        theta = self._linear("coef_").theta
        return theta[:, 0] if self._single else theta.T

    @property
    def intercept_(self) -> Any:
        """The constant part of the decision, one for each product if y was a matrix."""
        intercept = self._linear("intercept_").intercept
        return float(intercept[0]) if self._single else intercept

    def _get_feature_names_out(self, input_features: Any = None) -> Any:
        """Return the names of the features that ``coef_`` belongs to.

        Parameters
        ----------
        input_features
            Names of the columns of X; None is those of ``fit``, or x0, x1, ... if it saw none.
        """
        coefficients = np.atleast_2d(self.coef_)
        return _feature_names(self, self._fitted_policy(), coefficients.shape[1], input_features)

    get_feature_names_out = available_if(lambda self: self._linear("get_feature_names_out"))(
        _get_feature_names_out
    )

    def _fitted_policy(self) -> Policy:
        """Return the policy that was learned."""
        return Linear()

    def _linear(self, name: str) -> LinearParameters:
        """Return the parameters, or raise the AttributeError that says why there are none."""
        check_is_fitted(self)
        reason = _why_not_linear(self._fitted_policy())
        if reason is not None:
            raise AttributeError(f"{type(self).__name__} has no {name}: {reason}")
        parameters: LinearParameters = self.parameters_
        return parameters


def _why_not_linear(policy: Policy) -> str | None:
    """Say why coefficients would not describe the decisions of a policy."""
    if not isinstance(policy, Linear):
        return f"its policy, {type(policy).__name__}, is not linear."
    if policy.offset is not None:
        return (
            "an ensemble or a forecast decides. With a radius of your own or nominal=None the policy "
            "is linear."
        )
    if policy.decisions is not None:
        return "its decisions have limits, so that they are not linear in the context."
    return None


def _feature_names(estimator: Any, policy: Policy, size: int, given: Any) -> Any:
    """Return names of features: of columns, of a transformer that can tell, or numbered."""
    known = getattr(estimator, "feature_names_in_", None)
    columns = [f"x{j}" for j in range(estimator.n_features_in_)] if known is None else list(known)
    if given is not None:
        if len(given) != len(columns) or (known is not None and list(given) != columns):
            raise InvalidInputError(f"input_features must be the columns of fit, got {list(given)!r}.")
        columns = list(given)
    features: Any = policy.features
    if features is None:
        names = columns
    elif isinstance(features, Select):
        names = [columns[j] for j in features.columns]
    elif hasattr(getattr(features, "transformer", None), "get_feature_names_out"):
        names = list(features.transformer.get_feature_names_out(columns))
    else:
        names = [f"feature{j}" for j in range(size)]
    return np.asarray(names, dtype=object)


def seed_from(random_state: Any) -> int:
    """Return the seed of a fit: the number given, or a new one if None is."""
    if random_state is None:
        return int(np.random.SeedSequence().generate_state(1)[0])
    return check_integer("random_state", random_state, at_least=0)
