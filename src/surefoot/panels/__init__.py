"""Panels: one policy for each of many series."""

from surefoot.panels.panel_fit import fit_many
from surefoot.panels.policy_table import PolicyTable
from surefoot.panels.pooling import PooledPolicy
from surefoot.panels.records import SeriesRecord
from surefoot.panels.running import PanelProgress
from surefoot.panels.series import PanelColumns

__all__ = ["PanelColumns", "PanelProgress", "PolicyTable", "PooledPolicy", "SeriesRecord", "fit_many"]
