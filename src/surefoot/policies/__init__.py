"""Policies: how a context becomes a decision."""

from surefoot.policies.base import Policy
from surefoot.policies.linear import Linear, LinearParameters

__all__ = ["Linear", "LinearParameters", "Policy"]
