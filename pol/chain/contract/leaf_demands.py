"""Demands for leaves of committed data: event `Demanded`, then `Answered` or `Expired`."""

from __future__ import annotations

from dataclasses import astuple, dataclass
from operator import attrgetter
from typing import Any, ClassVar, Generic, TypeVar

from eth_abi.abi import encode
from web3.types import TxReceipt

from pol.chain.account.wallet import Wallet
from pol.chain.contract.binding import Binding
from pol.chain.contract.structs import decoded
from pol.commitments.keccak import keccak256


@dataclass(frozen=True)
class LeafDemand:
    """A demand for one leaf; subclasses have the members of the contract's struct."""

    ABI_TYPE: ClassVar[str]

    @property
    def key(self) -> bytes:
        """The hash by which the contract knows it."""
        return keccak256(encode([self.ABI_TYPE], [astuple(self)]))


D = TypeVar("D", bound=LeafDemand)


class LeafDemands(Binding, Generic[D]):
    """A contract that takes demands for leaves. ``OWNER`` is the member of its events that names the run or task."""

    DEMAND: type[D]
    OWNER: ClassVar[str]

    def demands(self, owner: bytes) -> list[D]:
        """All demands of a run or task that are neither answered nor expired, the most urgent one first."""
        of: dict[str, Any] = {self.OWNER: owner}
        made = {bytes(event["key"]): decoded(self.DEMAND, event["demand"]) for event in self.events("Demanded", **of)}
        ended = {bytes(event["key"]) for _, event in self.log.read(("Answered", "Expired"), **of)} if made else set()
        return sorted((demand for key, demand in made.items() if key not in ended), key=attrgetter("deadline"))

    def expire(self, wallet: Wallet, demand: D) -> TxReceipt:
        """End a demand that wasn't answered in time: the withholding party is slashed. A moot one ends at any time.

        Raises:
            Reverted: its time isn't over, it has ended, or a verdict is on its way.
        """
        return self.transact(wallet, "expire", astuple(demand))

    def _demanded(self, receipt: TxReceipt) -> D:
        return decoded(self.DEMAND, self.emitted(receipt, "Demanded")["demand"])
