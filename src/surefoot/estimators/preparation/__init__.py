"""Preparation: tables with numbers, categories, dates and gaps become what policies see."""

from surefoot.estimators.preparation.plan import CategoryPart, NumberPart, Plan
from surefoot.estimators.preparation.prepared import PreparedPolicy
from surefoot.estimators.preparation.table import Table, read_table

__all__ = ["CategoryPart", "NumberPart", "Plan", "PreparedPolicy", "Table", "read_table"]
