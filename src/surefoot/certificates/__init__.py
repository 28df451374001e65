"""Certificates: what is proved about an answer. Nothing here imports a solver or a kernel."""

from surefoot.certificates.certificate import (
    Certificate,
    certify,
    gap_floor,
    make_certificate,
    relative_gap,
)
from surefoot.certificates.general import (
    MovedRows,
    certify_general,
    costs_of,
    distances_of,
    dual_value,
    growth_power,
)
from surefoot.certificates.inner import Response, best_response, order_two_slope, stay
from surefoot.certificates.lower import lower_bound
from surefoot.certificates.worst_case import WorstCase, worst_case, worst_case_value

__all__ = [
    "Certificate",
    "MovedRows",
    "Response",
    "WorstCase",
    "best_response",
    "certify",
    "certify_general",
    "costs_of",
    "distances_of",
    "dual_value",
    "gap_floor",
    "growth_power",
    "lower_bound",
    "make_certificate",
    "order_two_slope",
    "relative_gap",
    "stay",
    "worst_case",
    "worst_case_value",
]
