"""Learn while deciding: policies on a stream."""

from surefoot.engines.step_rules import AdaptiveStep, ConstantStep, DecayingRadius, DecayingStep
from surefoot.online.detectors import ADWIN, PageHinkley, River
from surefoot.online.drift import Restart, Window
from surefoot.online.memory import Memory
from surefoot.online.policy import OnlinePolicy

__all__ = [
    "ADWIN",
    "AdaptiveStep",
    "ConstantStep",
    "DecayingRadius",
    "DecayingStep",
    "Memory",
    "OnlinePolicy",
    "PageHinkley",
    "Restart",
    "River",
    "Window",
]
