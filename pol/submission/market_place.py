"""Where a market is: a `pol.toml` of `pol up`, or what its reader was given."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path

from pol.chain.account.signers import LocalSigner, Signer, hexadecimal_key, read_private
from pol.chain.deploy.deployment import Deployment
from pol.chain.node.connection import Connection
from pol.chain.node.networks import is_test_net
from pol.errors import OperationalError, ProtocolError

PLACE, FOLDER, NOTES = "pol.toml", "pol-market", "submissions"


@dataclass(frozen=True)
class MarketPlace:
    """Access to a market: chain, contracts and store; and the signer of the one who asks, if it is known."""

    connection: Connection
    deployment: Deployment
    store_url: str
    notes: Path
    """A folder for what the submitter keeps about its tasks."""
    signer: Signer | None = None

    @classmethod
    def here(cls, folder: Path | str | None = None) -> MarketPlace:
        """The market of a folder; without one that of this folder or of ``pol-market`` in it.

        Raises:
            OperationalError: there is none, a file can't be read, or the node doesn't answer.
            ProtocolError: a file holds something else.
        """
        file = _place(None if folder is None else Path(folder))
        entries = _entries(file)

        def path(name: str) -> Path:
            return file.parent / entries[name]

        try:
            connection = Connection.to(entries["rpc"])
            deployment = Deployment.from_json(path("deployment").read_text())
        except OSError as error:
            raise OperationalError(f"can't read the deployment {path('deployment')}: {error.strerror}") from error
        except OperationalError as error:
            raise OperationalError(
                f"the market of {file} doesn't answer at {entries['rpc']}: start it by `pol up --folder {file.parent}`"
            ) from error
        store = entries["store"]
        store_url = store if "://" in store else f"file://{path('store').resolve()}"
        signer = _signer(path("key"), connection) if "key" in entries else None
        return cls(connection, deployment, store_url, path("deployment").parent / NOTES, signer)


def _place(folder: Path | None) -> Path:
    for place in (folder,) if folder is not None else (Path(), Path(FOLDER)):
        if (place / PLACE).is_file():
            return (place / PLACE).resolve()
    where = "here" if folder is None else f"in {folder}"
    raise OperationalError(f"there is no market {where}: start one by `pol up`, or name its folder by --market")


def _entries(file: Path) -> dict[str, str]:
    """The keys of the chosen network."""
    try:
        document = tomllib.loads(file.read_text())
        entries = document["networks"][document["network"]]
        found = {name: entries[name] for name in ("rpc", "deployment", "store", "key") if name in entries}
        if not {"rpc", "deployment", "store"} <= found.keys() or not all(type(v) is str for v in found.values()):
            raise KeyError("rpc, deployment or store")
    except OSError as error:
        raise OperationalError(f"can't read {file}: {error.strerror}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, KeyError, TypeError, AttributeError) as error:
        raise ProtocolError(f"{file} has no network with rpc, deployment and store ({error}): see `pol up`") from error
    return found


def _signer(file: Path, connection: Connection) -> Signer:
    """The key in a file of 64 hexadecimal digits, on test networks only."""
    if not is_test_net(connection.chain_id):
        raise ProtocolError(
            f"{connection.name} is chain {connection.chain_id}, where no plain key is taken from a file: use --keystore"
        )
    return LocalSigner(hexadecimal_key(read_private(file).decode(errors="replace"), str(file)))
