"""Certificates: what is proved about an answer. Nothing here imports a solver or a kernel."""

from surefoot.certificates.certificate import Certificate, certify, make_certificate, relative_gap
from surefoot.certificates.general import (
    affine_design,
    bounded,
    certify_general,
    dual_value,
    growth_power,
    lower_bound,
    move_distances,
)

__all__ = [
    "Certificate",
    "affine_design",
    "bounded",
    "certify",
    "certify_general",
    "dual_value",
    "growth_power",
    "lower_bound",
    "make_certificate",
    "move_distances",
    "relative_gap",
]
