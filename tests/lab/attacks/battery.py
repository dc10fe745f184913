"""All attacks."""

from lab.attacks import (
    amplified_averages,
    false_data,
    hidden_drift,
    kink_ladder,
    looked_segments,
    other_precision,
    other_settings,
    protocol_attacks,
    shortcuts,
    state_tampering,
    stolen_work,
    synthetic_data,
    tiny_updates,
    within_tolerance,
)
from lab.attacks.forgery import Attack

HIDING: tuple[Attack, ...] = (
    *within_tolerance.ATTACKS,
    *hidden_drift.ATTACKS,
    *amplified_averages.ATTACKS,
    *looked_segments.ATTACKS,
    *kink_ladder.ATTACKS,
)
"""Those that hide in the tolerance."""
ATTACKS: tuple[Attack, ...] = (
    *synthetic_data.ATTACKS,
    *tiny_updates.ATTACKS,
    *shortcuts.ATTACKS,
    *false_data.ATTACKS,
    *other_settings.ATTACKS,
    *state_tampering.ATTACKS,
    *other_precision.ATTACKS,
    *stolen_work.ATTACKS,
    *protocol_attacks.ATTACKS,
    *HIDING,
)


def named(name: str) -> Attack:
    """The attack with this name."""
    return next(attack for attack in ATTACKS if attack.name == name)
