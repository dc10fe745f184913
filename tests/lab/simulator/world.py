"""Where games are played: contracts, accounts and one task, made once; each game begins from there."""

from __future__ import annotations

import shutil
import tempfile
from functools import cache
from itertools import count
from pathlib import Path
from random import Random

import torch
from web3 import Web3

from lab.simulator.cast import CHEATS, HONEST, Character, made
from memory_chain import MemoryChain
from node_snapshots import order
from pol.chain.account.gas_fees import InclusionPolicy
from pol.chain.account.wallet import Wallet
from pol.chain.deployment_rules import BeaconKind, MarketRules, Settings
from pol.chain.deployments.deployment import deploy
from pol.chain.node.connection import Connection
from pol.commitments.keccak import keccak256
from pol.demo import digits
from pol.graph.capture import Capture, capture
from pol.incentives.forced_errors import LARGEST_RATE
from pol.roles.party.role import Role
from pol.roles.submitter.submitter import GWEI, Offer, Submitter
from toy_market import ETHER, fund

STEPS, INTERVAL = 8, 2
BROUGHT = 50 * ETHER
OFFER = Offer(STEPS, INTERVAL, draws=1, wei_per_work_unit=100 * GWEI)
RULES = MarketRules(rate=LARGEST_RATE)
"""Verifiers err as often as can be, as that has the most rules."""
PATIENCE = InclusionPolicy(timeout=10**9)


@cache
def captured() -> Capture:
    """The task's training step."""
    torch.manual_seed(23)
    model = digits.DigitClassifier(4)
    return capture(model, digits.loss_function, digits.build_optimizer(model), digits.dataset(), digits.order(1, STEPS))


class World:
    """A market whose parties have brought their money, and a task that has just been submitted."""

    def __init__(self, offer: Offer = OFFER) -> None:
        self.chain = MemoryChain()
        self.folder = Path(tempfile.mkdtemp(prefix="pol-simulator-"))
        self.connection = Connection(Web3(self.chain, middleware=[]), "memory")
        deployer = Wallet.create(self.connection, keccak256(b"deployer"))
        fund(self.connection, deployer.address)
        self.deployment = deploy(deployer, Settings(deployer.address, market=RULES, beacon=BeaconKind.PREVRANDAO))
        market = self.deployment.market(self.connection)
        market.vault.deposit(deployer, BROUGHT)
        market.jackpot.donate(deployer, BROUGHT)
        for character in (*HONEST, *CHEATS):
            role = self.role(character, Random(0))
            fund(self.connection, role.wallet.address)
            role.deposit(BROUGHT)
            if character.tickets:
                role.market.sortition.enrol(role.wallet, character.tickets)
        submitter = self.role(HONEST[0], Random(0))
        assert isinstance(submitter, Submitter)
        self.task_id = submitter.submit(captured(), offer)
        self._store = Path(shutil.copytree(self.folder / "store", self.folder / "begin"))
        self._begin = order(self.connection, "evm_snapshot")
        self.height = self.chain.height
        """Of the block before each game."""

    def role(self, character: Character, random: Random, evidence: Path | None = None) -> Role:
        """A party as a process that has just started: it knows its key, the chain and the store."""
        connection, ticks = Connection(Web3(self.chain, middleware=[]), "memory"), count()
        key, store = keccak256(character.name.encode()), f"file://{self.folder / 'store'}"
        timer = lambda: next(ticks) / 1024  # noqa: E731  # each measurement takes as long on any machine
        role = made(character, random, connection, self.deployment, key, store, evidence=evidence, timer=timer)
        role.wallet.patience = PATIENCE
        return role

    def restore(self, seed: int) -> None:
        """Chain and store as they were in the beginning; what is drawn from now on follows from the seed."""
        order(self.connection, "evm_revert", self._begin)
        self._begin = order(self.connection, "evm_snapshot")
        self.chain.entropy = seed
        shutil.rmtree(self.folder / "store")
        shutil.copytree(self._store, self.folder / "store")
        shutil.rmtree(self.folder / "parties", ignore_errors=True)

    def close(self) -> None:
        """Remove the store."""
        shutil.rmtree(self.folder)
