"""Where a market is: a `pol.toml` of `pol up`, or what its reader was given."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pol.chain.account.signers import Signer, from_key_file, read_passphrase
from pol.chain.deployments.deployment import Deployment
from pol.chain.node.connection import Connection
from pol.chain.node.network_settings import FILE, read_document, require_own
from pol.errors import OperationalError, ProtocolError

FOLDER, NOTES = "pol-market", "submissions"


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
            ProtocolError: a file holds something else, or was found and belongs to somebody else.
        """
        file = _place(None if folder is None else Path(folder))
        entries = _entries(file)

        def path(name: str) -> Path:
            return file.parent / str(entries[name])

        nodes = entries["rpc"] if isinstance(entries["rpc"], list) else [entries["rpc"]]
        try:
            connection = Connection.to(*nodes)
            deployment = Deployment.from_json(path("deployment").read_text())
        except OSError as error:
            raise OperationalError(f"can't read the deployment {path('deployment')}: {error.strerror}") from error
        except OperationalError as error:
            raise OperationalError(
                f"the market of {file} doesn't answer at {nodes[0]}: start it by `pol up --folder {file.parent}`"
            ) from error
        store = entries["store"]
        store_url = store if "://" in store else f"file://{path('store').resolve()}"
        signer = None
        if "key" in entries:
            word = path("passphrase") if "passphrase" in entries else None
            signer = from_key_file(path("key"), connection.chain_id, lambda: read_passphrase(word))
        return cls(connection, deployment, store_url, path("deployment").parent / NOTES, signer)


def _place(folder: Path | None) -> Path:
    for place in (folder,) if folder is not None else (Path(), Path(FOLDER)):
        file = place / FILE
        if file.is_file():
            if folder is None:
                require_own(file.absolute(), f"name its folder, {file.parent.absolute()},")
            return file.resolve()
    where = "here" if folder is None else f"in {folder}"
    raise OperationalError(f"there is no market {where}: start one by `pol up`, or name its folder by --market")


def _entries(file: Path) -> dict[str, Any]:
    """What the file says of its network."""
    document = read_document(file)
    name = document.get("network")
    entries: dict[str, Any] = document.get("networks", {}).get(name, {})
    if missing := [each for each in ("rpc", "deployment", "store") if each not in entries]:
        raise ProtocolError(f"{file} doesn't say the {missing[0]} of the network {name}: `pol up` writes such a file")
    return entries
