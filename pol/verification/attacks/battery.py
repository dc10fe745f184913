"""All attacks."""

from __future__ import annotations

from pol.verification.attacks import (
    data,
    precision,
    protocol,
    settings,
    shortcuts,
    state,
    synthetic,
    theft,
    tiny,
    tolerance,
)
from pol.verification.attacks.forgery import Attack

ATTACKS: tuple[Attack, ...] = (
    *synthetic.ATTACKS,
    *tiny.ATTACKS,
    *shortcuts.ATTACKS,
    *data.ATTACKS,
    *settings.ATTACKS,
    *state.ATTACKS,
    *precision.ATTACKS,
    *theft.ATTACKS,
    *protocol.ATTACKS,
    *tolerance.ATTACKS,
)


def named(name: str) -> Attack:
    """The attack with this name."""
    return next(attack for attack in ATTACKS if attack.name == name)
