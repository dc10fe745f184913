"""All attacks."""

from lab.attacks import (
    amplified_averages,
    false_data,
    hidden_drift,
    looked_segments,
    other_settings,
    protocol_attacks,
    shortcuts,
    stolen_work,
    synthetic_data,
    within_tolerance,
)
from lab.attacks.forgery import Attack

HIDING: tuple[Attack, ...] = (
    *within_tolerance.ATTACKS,
    *hidden_drift.ATTACKS,
    *amplified_averages.ATTACKS,
    *looked_segments.ATTACKS,
    *looked_segments.LADDERS,
)
"""Those that hide in the tolerance."""
ATTACKS: tuple[Attack, ...] = (
    *synthetic_data.ATTACKS,
    *synthetic_data.TINY,
    *shortcuts.ATTACKS,
    *false_data.ATTACKS,
    *other_settings.SETTINGS,
    *other_settings.TAMPERED,
    *other_settings.PRECISIONS,
    *stolen_work.ATTACKS,
    *protocol_attacks.ATTACKS,
    *HIDING,
)


def named(name: str) -> Attack:
    """The attack with this name."""
    return next(attack for attack in ATTACKS if attack.name == name)
