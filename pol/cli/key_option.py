"""The option ``--key PEM``: a key that signs what a command writes."""

from __future__ import annotations

from pathlib import Path

import click
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from pol.errors import ProtocolError
from pol.training.storage.key_file import load_signing_key


def signing_key(ctx: click.Context, param: click.Parameter, value: Path | None) -> Ed25519PrivateKey | None:
    """The key in a file; callback of an option.

    Raises:
        click.BadParameter: the file holds something else than an Ed25519 key that isn't encrypted.
    """
    try:
        return None if value is None else load_signing_key(value)
    except ProtocolError as error:
        raise click.BadParameter(str(error), ctx, param) from error
