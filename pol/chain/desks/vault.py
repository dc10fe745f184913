"""The vault, the only contract that holds value (contracts/incentives/IStakeVault.sol)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from eth_typing import ChecksumAddress
from web3.types import TxReceipt

from pol.chain.account.wallet import Wallet
from pol.chain.contract.binding import Binding
from pol.chain.contract.relaying import Forwarder
from pol.chain.contract.token import Token

NATIVE = "0x0000000000000000000000000000000000000000"
"""The token address that stands for the chain's own currency."""


@dataclass(frozen=True)
class StakedDuty:
    """An account's stake for one duty to one desk; the leaving part is free from second ``until`` on."""

    desk: ChecksumAddress
    key: bytes
    locked: int
    leaving: int
    until: int


@dataclass(frozen=True)
class Balances:
    """An account's money in the vault, in the smallest unit of the asset."""

    free: int
    duties: tuple[StakedDuty, ...]

    @property
    def locked(self) -> int:
        """Stake for duties."""
        return sum(duty.locked for duty in self.duties)

    @property
    def leaving(self) -> int:
        """Money on its way out, or waiting for `StakeVault.finish_exit`."""
        return sum(duty.leaving for duty in self.duties)


class StakeVault(Binding):
    """The vault, with the verbs of a party."""

    @cached_property
    def token(self) -> Token | None:
        """The asset; None if it is the chain's own currency."""
        asset = self.read("asset")
        return None if asset == NATIVE else Token(self.connection, asset)

    @cached_property
    def exit_delay(self) -> int:
        """Seconds that leaving takes."""
        return int(self.read("exitDelay"))

    @cached_property
    def forwarder(self) -> Forwarder:
        """The forwarder of parties that have no ether."""
        return Forwarder(self.connection, self.read("trustedForwarder"))

    def deposit(self, wallet: Wallet, amount: int, account: ChecksumAddress | None = None) -> TxReceipt:
        """Deposit ``amount`` for ``account``, by default for the wallet itself; approves tokens first if needed.

        Raises:
            Reverted: the vault has no desks yet, the amount is zero, or the token transfers another amount.
            OperationalError: the node fails, or the wallet holds too little.
        """
        call = self.function("deposit", account or wallet.address, amount)
        if self.token is None:
            return wallet.send(call, amount)
        if self.token.allowance(wallet.address, self.address) < amount:
            self.token.approve(wallet, self.address, amount)
        return wallet.send(call)

    def withdraw(self, wallet: Wallet, amount: int, to: ChecksumAddress | None = None) -> TxReceipt:
        """Take free money out, by default to the wallet itself.

        Raises:
            Reverted: the account has less, or the receiver refuses it.
        """
        return self.transact(wallet, "withdraw", to or wallet.address, amount)

    def finish_exit(
        self, wallet: Wallet, desk: ChecksumAddress, key: bytes, account: ChecksumAddress | None = None
    ) -> TxReceipt:
        """Free the stake of a finished exit; anybody may do it for any account.

        Raises:
            Reverted: it is too early, or nothing is leaving.
        """
        return self.transact(wallet, "finishExit", desk, key, account or wallet.address)

    def free(self, account: ChecksumAddress) -> int:
        """Money that an account can withdraw."""
        return int(self.read("free", account))

    def pot(self, desk: ChecksumAddress, key: bytes) -> int:
        """Money of a desk that belongs to no party yet."""
        return int(self.read("pot", desk, key))

    def duty(self, desk: ChecksumAddress, key: bytes, account: ChecksumAddress) -> StakedDuty:
        """An account's stake for one duty."""
        leaving, until = self.read("leaving", desk, key, account)
        return StakedDuty(desk, key, int(self.read("locked", desk, key, account)), int(leaving), int(until))

    def balances(self, account: ChecksumAddress) -> Balances:
        """An account's money; its duties are found from events."""
        places = dict.fromkeys((e["desk"], bytes(e["key"])) for e in self.events("Locked", account=account))
        duties = (self.duty(desk, key, account) for desk, key in places)
        return Balances(self.free(account), tuple(duty for duty in duties if duty.locked or duty.leaving))
