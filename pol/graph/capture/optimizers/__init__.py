"""Rules of optimizers: one module for each family, and a table that users can extend."""

from pol.graph.capture.optimizers import adafactor, adam, adam_variants, adaptive, muon, rprop, sgd
from pol.graph.capture.optimizers.lion import Lion
from pol.graph.capture.optimizers.rule import (
    RULES,
    SQUARES_SCALE,
    Number,
    OptimizerRule,
    OptimizerState,
    Options,
    defines,
)

__all__ = [
    "RULES",
    "SQUARES_SCALE",
    "Lion",
    "Number",
    "OptimizerRule",
    "OptimizerState",
    "Options",
    "adafactor",
    "adam",
    "adam_variants",
    "adaptive",
    "defines",
    "muon",
    "rprop",
    "sgd",
]
