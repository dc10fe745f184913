"""Desks that draw by rounds of the beacon, and the end of a wait that takes too long."""

from __future__ import annotations

from web3.types import TxReceipt

from pol.chain.account.wallet import Wallet
from pol.chain.contract.binding import Binding


class BeaconRounds(Binding):
    """A contract that draws by rounds of the beacon."""

    def replace_round(self, wallet: Wallet, task_id: bytes) -> TxReceipt:
        """Replace a round that the beacon hasn't given for a week."""
        return self.transact(wallet, "replaceRound", task_id)

    def patient_until(self, task_id: bytes) -> int:
        """Last second of a wait for a round before the task may be abandoned; 0 if nothing waits."""
        return int(self.read("patientUntil", task_id))
