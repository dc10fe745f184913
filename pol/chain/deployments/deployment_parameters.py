"""The parameter file of a deployment: TOML for people to review, and the same as a document."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Mapping
from dataclasses import asdict, fields, replace
from typing import Any

from eth_typing import ChecksumAddress
from web3 import Web3

from pol.chain.deployment_rules import BeaconKind, GameRules, MarketRules, Settings
from pol.errors import ProtocolError


def _address(value: Any) -> ChecksumAddress:
    if not Web3.is_address(value):
        raise ValueError(f"{value!r} isn't an address")
    return Web3.to_checksum_address(value)


def _number(value: Any) -> int:
    if type(value) is not int or value < 0:
        raise ValueError(f"{value!r} isn't a whole number")
    return value


_OTHERS: Mapping[str, tuple[str, Callable[[Any], Any]]] = {
    "money.treasury": ("treasury", _address),
    "money.token": ("token", _address),
    "draws.beacon": ("beacon", BeaconKind),
    "draws.drand_delay": ("drand_delay", _number),
}
"""The other parameters by section and key: the field in Settings, and its parser."""


def read_parameters(text: str, default: Settings) -> Settings:
    """Settings of a parameter file; missing ones are taken from ``default``.

    Raises:
        ProtocolError: not TOML, an unknown section or key, or a value of the wrong type.
    """
    try:
        return settings_of(tomllib.loads(text), default)
    except tomllib.TOMLDecodeError as error:
        raise ProtocolError(f"the parameters aren't TOML: {error}") from error


def settings_of(document: Mapping[str, Any], default: Settings) -> Settings:
    """Settings of a document with the sections game, market, draws and money. Raises as read_parameters."""
    changes: dict[str, dict[str, Any]] = {"game": {}, "market": {}, "": {}}
    known = {
        f"{name}.{f.name}" for name, rules in (("game", GameRules), ("market", MarketRules)) for f in fields(rules)
    }
    for section, entries in document.items():
        if not isinstance(entries, Mapping):
            raise ProtocolError(f"{section} is no section of parameters: there are {_sections()}")
        for key, value in entries.items():
            place = f"{section}.{key}"
            try:
                if place in known:
                    changes[section][key] = _number(value)
                elif place in _OTHERS:
                    field, kind = _OTHERS[place]
                    changes[""][field] = kind(value)
                else:
                    raise ProtocolError(
                        f"there is no parameter {place}: there are {', '.join(sorted(known | set(_OTHERS)))}"
                    )
            except ValueError as error:
                raise ProtocolError(f"the parameter {place}: {error}") from error
    return replace(
        default,
        game=replace(default.game, **changes["game"]),
        market=replace(default.market, **changes["market"]),
        **changes[""],
    )


def document_of(settings: Settings) -> dict[str, dict[str, Any]]:
    """All parameters, with the sections of `settings_of`."""
    document: dict[str, dict[str, Any]] = {"game": asdict(settings.game), "market": asdict(settings.market)}
    for place, (field, _) in _OTHERS.items():
        section, key = place.split(".")
        value = getattr(settings, field)
        if value is not None:
            document.setdefault(section, {})[key] = value
    return document


def _sections() -> str:
    return ", ".join(sorted({"game", "market"} | {place.split(".")[0] for place in _OTHERS}))
