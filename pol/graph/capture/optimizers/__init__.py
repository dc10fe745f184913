"""What each optimizer computes: one module for each family, and a table that users can add to."""

from pol.graph.capture.optimizers import adafactor, adam, adaptive, sgd
from pol.graph.capture.optimizers.lion import Lion
from pol.graph.capture.optimizers.rule import RULES, Number, OptimizerRule, Options, State, defines

__all__ = [
    "RULES",
    "Lion",
    "Number",
    "OptimizerRule",
    "Options",
    "State",
    "adafactor",
    "adam",
    "adaptive",
    "defines",
    "sgd",
]
