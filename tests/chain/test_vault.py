"""A vault on chain: money comes in, answers for duties, leaves, and goes out, by hand or by signature."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Any

import pytest
from eth_typing import ChecksumAddress
from hexbytes import HexBytes

import solidity
import toy_market
from pol.chain.account.typed_data import signed_struct, signing_domain
from pol.chain.account.wallet import Reverted, Wallet
from pol.chain.contract.binding import deploy_contract
from pol.chain.contract.token import Token
from pol.chain.contract_abi import ContractAbi
from pol.chain.desks.vault import NATIVE, Balances, StakedDuty, StakeVault
from pol.chain.node.connection import Connection
from shared_chain import SharedChain

ETHER = 10**18
DAY = 86_400
KEY = b"a duty".ljust(32, b"\0")
PERMIT_TYPE = signed_struct("Permit", "address owner, address spender, uint256 value, uint256 nonce, uint256 deadline")


@pytest.fixture
def connection(chain: SharedChain) -> Iterator[Connection]:
    with chain.lent():
        yield chain.connection


def deploy_vault(wallet: Wallet, exit_delay: int, token: ChecksumAddress | None = None) -> StakeVault:
    forwarder = deploy_contract(wallet, "Forwarder")
    arguments = (token or NATIVE, exit_delay, forwarder, wallet.address)
    return StakeVault(wallet.connection, deploy_contract(wallet, "StakeVault", *arguments))


class Parties:
    """A vault with a desk that does what it is told, and three wallets."""

    def __init__(self, connection: Connection, with_token: bool = False) -> None:
        self.connection = connection
        wallets = [Wallet.create(self.connection, bytes([i]) * 32) for i in (1, 2, 3, 4)]
        self.deployer, self.alice, self.bob, self.poor = wallets
        toy_market.fund(self.connection, *(wallet.address for wallet in wallets[:3]))
        self.coin: Any = None
        if with_token:
            self.coin = self.contract("tests/forge/incentives/Tokens.sol", "Coin")
            give = ContractAbi(self.coin.abi).call
            for wallet in wallets:
                self.deployer.send(give(self.coin.address, "give", wallet.address, 10 * ETHER))
        token = self.coin.address if with_token else None
        self.vault = deploy_vault(self.deployer, 3 * DAY, token)
        self.desk = self.contract("tests/forge/incentives/PlainDesk.sol", "PlainDesk", self.vault.address)

    def contract(self, path: str, name: str, *arguments: ChecksumAddress) -> Any:
        built = solidity.compiled(path, name)
        factory = self.connection.web3.eth.contract(abi=built["abi"], bytecode=built["bytecode"]["object"])
        address = self.deployer.deploy(bytes(HexBytes(factory.constructor(*arguments).data_in_transaction)))
        return self.connection.web3.eth.contract(address=address, abi=built["abi"])

    def wired(self) -> Parties:
        self.vault.transact(self.deployer, "wire", [self.desk.address])
        return self

    def permit(self, wallet: Wallet, amount: int) -> tuple[int, int, bytes, bytes]:
        """An approval of the vault by signature (ERC-2612): deadline, v, r, s."""
        _, name, version, chain_id, address, *_ = self.coin.functions.eip712Domain().call()
        deadline = self.connection.now() + DAY
        message = {
            "owner": wallet.address,
            "spender": self.vault.address,
            "value": amount,
            "nonce": self.coin.functions.nonces(wallet.address).call(),
            "deadline": deadline,
        }
        signature = wallet.sign_typed(signing_domain(name, version, chain_id, address), PERMIT_TYPE, message)
        return deadline, signature[64], signature[:32], signature[32:64]

    def tell(self, verb: str, wallet: Wallet, amount: int) -> None:
        self.deployer.send(ContractAbi(self.desk.abi).call(self.desk.address, verb, KEY, wallet.address, amount))


def test_money_comes_in_answers_for_a_duty_leaves_and_goes_out(connection: Connection) -> None:
    parties = Parties(connection).wired()
    vault, alice, bob = parties.vault, parties.alice, parties.bob
    assert (vault.token, vault.exit_delay) == (None, 3 * DAY)
    vault.deposit(alice, 5 * ETHER)
    vault.deposit(bob, 1 * ETHER, alice.address)
    assert vault.balances(alice.address) == Balances(6 * ETHER, ())
    parties.tell("lock", alice, 4 * ETHER)
    parties.tell("startExit", alice, 3 * ETHER)
    until = parties.connection.now() + 3 * DAY
    duty = StakedDuty(parties.desk.address, KEY, ETHER, 3 * ETHER, until)
    balances = vault.balances(alice.address)
    assert balances == Balances(2 * ETHER, (duty,))
    assert (balances.locked, balances.leaving) == (ETHER, 3 * ETHER)
    parties.tell("forfeit", alice, 2 * ETHER)
    parties.tell("pay", bob, ETHER)
    assert vault.pot(parties.desk.address, KEY) == ETHER
    assert vault.balances(bob.address) == Balances(ETHER, ())
    with pytest.raises(Reverted) as refused:
        vault.finish_exit(bob, parties.desk.address, KEY, alice.address)
    assert (refused.value.error, refused.value.arguments) == ("NotYet", (until,))
    parties.connection.wait_until(until)
    vault.finish_exit(bob, parties.desk.address, KEY, alice.address)
    assert vault.balances(alice.address) == Balances(4 * ETHER, ())
    before = bob.balance()
    vault.withdraw(alice, 4 * ETHER, bob.address)
    assert bob.balance() == before + 4 * ETHER


def test_who_has_no_ether_is_relayed(connection: Connection) -> None:
    parties = Parties(connection).wired()
    vault, poor = parties.vault, parties.poor
    vault.deposit(parties.alice, 2 * ETHER, poor.address)
    request = vault.forwarder.sign(poor, vault.function("withdraw", poor.address, ETHER))
    assert vault.forwarder.is_valid(request)
    forged = dataclasses.replace(request, data=request.data[:-1] + b"\1")
    assert not vault.forwarder.is_valid(forged)
    vault.forwarder.send(parties.bob, request)
    assert poor.balance() == ETHER
    assert vault.balances(poor.address) == Balances(ETHER, ())
    late = vault.forwarder.sign(poor, vault.function("withdraw", poor.address, ETHER), valid_seconds=60)
    parties.connection.wait_until(late.deadline)
    with pytest.raises(Reverted, match="ERC2771ForwarderExpiredRequest"):
        vault.forwarder.send(parties.bob, late)
    gift = vault.forwarder.sign(poor, vault.function("deposit", poor.address, ETHER), value=ETHER)
    vault.forwarder.send(parties.bob, gift)
    assert vault.free(poor.address) == 2 * ETHER


def test_tokens_come_in_by_approval_and_by_permit(connection: Connection) -> None:
    parties = Parties(connection, with_token=True).wired()
    vault, alice, bob, poor = parties.vault, parties.alice, parties.bob, parties.poor
    token = vault.token
    assert isinstance(token, Token)
    assert token.address == parties.coin.address
    vault.deposit(alice, 3 * ETHER)
    assert token.allowance(alice.address, vault.address) == 0
    token.approve(alice, vault.address, 2 * ETHER)
    sent = len(alice.receipts)
    vault.deposit(alice, 1 * ETHER)
    assert len(alice.receipts) == sent + 1
    vault.transact(bob, "depositWithPermit", bob.address, 2 * ETHER, *parties.permit(bob, 2 * ETHER))
    assert len(bob.receipts) == 1
    assert (vault.free(alice.address), vault.free(bob.address)) == (4 * ETHER, 2 * ETHER)
    assert token.balance(vault.address) == 6 * ETHER
    call = vault.function("depositWithPermit", poor.address, ETHER, *parties.permit(poor, ETHER))
    vault.forwarder.send(bob, vault.forwarder.sign(poor, call))
    assert vault.free(poor.address) == ETHER
    vault.withdraw(alice, 4 * ETHER, poor.address)
    assert token.balance(poor.address) == 13 * ETHER
