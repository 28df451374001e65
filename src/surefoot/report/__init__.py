"""The report of a fitted model: one HTML file that says what it decides, at what cost, how surely."""

from surefoot.report.rows import Origin
from surefoot.report.write import write_report

__all__ = ["Origin", "write_report"]
