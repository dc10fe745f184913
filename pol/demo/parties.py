"""The cast of the demo: honest and cheating parties, each with its own connection and key."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import TypedDict

from pol.chain.account.wallet import Wallet
from pol.chain.deployments.deployment import Deployment
from pol.chain.node.connection import Connection
from pol.demo.cheating_parties import BaselessWhistleblower, JumpingSolver, LyingVerifier
from pol.demo.funding import PARTIES, Purse
from pol.roles.party.policy import Policy
from pol.roles.party.role import Role
from pol.roles.solver.solver import Solver
from pol.roles.submitter.submitter import Submitter
from pol.roles.verifier.verifier import Verifier
from pol.roles.whistleblower.whistleblower import Whistleblower


class PartyArguments(TypedDict):
    """Arguments of a party: nothing of another party."""

    connection: Connection
    deployment: Deployment
    key: bytes
    store_url: str
    policy: Policy


@dataclass(frozen=True)
class Cast:
    """The parties."""

    submitter: Submitter
    solver: Solver
    cheating_solver: JumpingSolver
    verifier: Verifier
    lying_verifier: LyingVerifier
    whistleblower: Whistleblower
    false_challenger: BaselessWhistleblower

    @property
    def roles(self) -> tuple[Role, ...]:
        """All but the deployer, in the order of `PARTIES`."""
        verifiers, watchers = (self.verifier, self.lying_verifier), (self.whistleblower, self.false_challenger)
        return (self.submitter, self.solver, self.cheating_solver, *verifiers, *watchers)

    def wallets(self, deployer: Wallet) -> dict[str, Wallet]:
        """The wallet of each party by its name, as in `PARTIES`."""
        return dict(zip(PARTIES, (deployer, *(role.wallet for role in self.roles)), strict=True))


def assemble(
    deployment: Deployment, connect: Callable[[], Connection], purse: Purse, store_url: str, policy: Policy
) -> Cast:
    """All parties, each with a connection of its own. The cheating is drawn from the purse's seed."""

    def party(name: str) -> PartyArguments:
        return {
            "connection": connect(),
            "deployment": deployment,
            "key": purse.key(name),
            "store_url": store_url,
            "policy": policy,
        }

    def random(name: str) -> Random:
        return Random(f"{purse.seed} {name}")

    return Cast(
        submitter=Submitter(**party("submitter")),
        solver=Solver(**party("honest solver")),
        cheating_solver=JumpingSolver(**party("cheating solver"), random=random("cheating solver")),
        verifier=Verifier(**party("honest verifier")),
        lying_verifier=LyingVerifier(**party("lying verifier"), random=random("lying verifier")),
        whistleblower=Whistleblower(**party("whistleblower")),
        false_challenger=BaselessWhistleblower(**party("false challenger"), random=random("false challenger")),
    )
