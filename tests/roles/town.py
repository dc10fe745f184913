"""A town of parties on an embedded chain, and the way of an honest task up to its learning proof."""

from pathlib import Path
from typing import TypeVar

from toy_market import fund

from pol.chain.beacon import BeaconKind
from pol.chain.connection import Connection
from pol.chain.deployment import RULES, Deployment, GameRules, deploy
from pol.chain.wallet import Wallet
from pol.commitments.keccak import keccak256
from pol.roles.policy import PUBLIC_CHAIN, Policy
from pol.roles.role import Role
from pol.roles.solver import Solver
from pol.roles.submitter import Offer, Submitter
from pol.roles.verifier import Verifier
from pol.training import digits
from pol.verification.profile import Profile

R = TypeVar("R", bound=Role)
OFFER = Offer(digits.STEPS, digits.INTERVAL, draws=1, rerun_count=2, profiled=1)


class Town:
    """A deployment, a store and parties that know nothing else of each other."""

    def __init__(
        self,
        folder: Path,
        rules: GameRules = RULES,
        connection: Connection | None = None,
        beacon_kind: BeaconKind = BeaconKind.BLOCK,
    ) -> None:
        self.connection = connection or Connection.embedded()
        self.store_url = f"file://{folder}"
        deployer = self._key("deployer")
        wallet = Wallet.create(self.connection, deployer)
        fund(self.connection, wallet.address)
        self.deployment: Deployment = deploy(wallet, wallet.address, rules, beacon_kind)

    @staticmethod
    def _key(name: str) -> bytes:
        return keccak256(name.encode())

    def join(self, kind: type[R], name: str, policy: Policy = PUBLIC_CHAIN) -> R:
        connection = Connection(self.connection.web3, self.connection.name)
        role = kind(connection, self.deployment, self._key(name), self.store_url, policy=policy)
        fund(connection, role.wallet.address)
        return role


def profiled(verifier: Verifier, task_id: bytes) -> Profile:
    """Post the profile of the task; when this returns it is final."""
    profile = verifier.profile(task_id)
    verifier.connection.wait_until(verifier.profiles.standing(task_id).deadline)
    return profile


def until_proof(town: Town) -> tuple[bytes, Submitter, Verifier, Solver]:
    submitter, verifier, solver = town.join(Submitter, "s"), town.join(Verifier, "v"), town.join(Solver, "t")
    task_id = submitter.submit(digits.captured(2), OFFER)
    verifier.join(task_id)
    profiled(verifier, task_id)
    solver.accept(task_id)
    solver.train(task_id)
    return task_id, submitter, verifier, solver
