"""Digests on a command line: 32 bytes in hexadecimal, or a file that holds nothing else."""

from __future__ import annotations

import re
from pathlib import Path

import click

_HASH = re.compile(r"(?:0x)?([0-9a-f]{64})", re.IGNORECASE)


def hash_in(text: str) -> str:
    """32 bytes in hexadecimal, in small letters. Raises BadParameter: it isn't that."""
    match = _HASH.fullmatch(text)
    if match is None:
        raise click.BadParameter(f"{text!r} isn't 32 bytes in hexadecimal")
    return match[1].lower()


def digest_in(text: str) -> str:
    """As `hash_in`, or the content of a file. Raises BadParameter: it is neither."""
    if _HASH.fullmatch(text):
        return hash_in(text)
    try:
        content = Path(text).read_bytes()[:100].decode(errors="replace").strip()
    except OSError as error:
        raise click.BadParameter(f"{text!r} is neither 32 bytes in hexadecimal nor a file with them") from error
    if not _HASH.fullmatch(content):
        raise click.BadParameter(f"the file {text!r} doesn't hold 32 bytes in hexadecimal, the digest of a document")
    return hash_in(content)


def hash_option(ctx: click.Context, param: click.Parameter, value: str | None) -> str | None:
    """The callback of an option that takes 32 bytes."""
    return None if value is None else hash_in(value)


def digest_option(ctx: click.Context, param: click.Parameter, value: str | None) -> str | None:
    """The callback of an option that takes 32 bytes, or a file with them."""
    return None if value is None else digest_in(value)
