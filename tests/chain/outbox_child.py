"""A process with one key and a journal: `URL DIRECTORY MOMENT`, which dies at a moment of its first broadcast.

It counts once: first it takes up what it has begun, then it looks, then it sends unless that is done.
"""

import os
import signal
import sys
from pathlib import Path
from typing import Any

from manual_node import COUNTER, KEY
from web3 import HTTPProvider, Web3
from web3.types import RPCEndpoint

from pol.chain.account.gas_fees import InclusionPolicy
from pol.chain.account.outbox_journal import OutgoingCall, SqliteJournal
from pol.chain.account.wallet import Wallet
from pol.chain.node.connection import Connection


class Mortal(HTTPProvider):
    """Kills its process when a transaction is to leave, or has left."""

    moment = "never"

    def make_request(self, method: RPCEndpoint, params: Any) -> Any:
        sends = method == "eth_sendRawTransaction"
        if sends and self.moment == "before":
            os.kill(os.getpid(), signal.SIGKILL)
        answer = super().make_request(method, params)
        if sends and self.moment == "after":
            os.kill(os.getpid(), signal.SIGKILL)
        return answer


def main(url: str, directory: str, moment: str) -> None:
    provider = Mortal(url)
    connection = Connection(Web3(provider), url)
    address = Wallet.create(connection, KEY).address
    journal = SqliteJournal.of(connection, address, Path(directory))
    wallet = Wallet.create(connection, KEY, journal=journal, patience=InclusionPolicy(3, 5, 30))
    provider.moment = moment
    if moment != "careless":
        wallet.outbox.resume()

    def counted() -> int:
        return int.from_bytes(connection.web3.eth.get_storage_at(COUNTER, 0))

    if moment == "careless":
        wallet.send_data(COUNTER, b"\x01", "count")
    else:
        wallet.outbox.send(OutgoingCall("count", COUNTER, data=b"\x01"), lambda: counted() >= 1)
    print(counted(), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
