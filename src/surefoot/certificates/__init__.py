"""Certificates: what is proved about an answer. Nothing here imports a solver or a kernel."""

from surefoot.certificates.certificate import Certificate, certify, make_certificate, relative_gap
from surefoot.certificates.general import (
    bounded,
    certify_general,
    dual_value,
    growth_power,
    move_distances,
)

__all__ = [
    "Certificate",
    "bounded",
    "certify",
    "certify_general",
    "dual_value",
    "growth_power",
    "make_certificate",
    "move_distances",
    "relative_gap",
]
