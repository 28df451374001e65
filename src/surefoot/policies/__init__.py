"""Policies: how a context becomes a decision."""

from surefoot.policies.base import Policy, PolicyParameters, Units
from surefoot.policies.custom import CustomPolicy
from surefoot.policies.features import FeatureMap, Polynomial, RandomFourier, Select
from surefoot.policies.linear import Linear, LinearParameters
from surefoot.policies.links import ELU, Sigmoid
from surefoot.policies.max_affine import MaxAffine
from surefoot.policies.mlp import MLP

__all__ = [
    "ELU",
    "MLP",
    "CustomPolicy",
    "FeatureMap",
    "Linear",
    "LinearParameters",
    "MaxAffine",
    "Policy",
    "PolicyParameters",
    "Polynomial",
    "RandomFourier",
    "Select",
    "Sigmoid",
    "Units",
]
