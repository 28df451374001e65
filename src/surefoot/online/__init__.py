"""Learn while deciding: policies on a stream."""

from surefoot.online.detectors import ADWIN, PageHinkley, River
from surefoot.online.drift import Restart, Window
from surefoot.online.memory import Memory
from surefoot.online.policy import OnlinePolicy
from surefoot.online.steps import AdaptiveStep, ConstantStep, DecayingRadius, DecayingStep

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
