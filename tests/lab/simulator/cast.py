"""Who plays: parties that follow the protocol, and those that don't."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from random import Random
from typing import Any

from pol.chain.desks.task_registry import Terms
from pol.demo.cheating_parties import BaselessWhistleblower, JumpingSolver, LyingVerifier
from pol.errors import ProtocolError
from pol.incentives.auction import Bid
from pol.roles.party.decisions import Action, Decision, Wait
from pol.roles.party.role import Role
from pol.roles.solver.solver import Solver
from pol.roles.solver.solver_decisions import next_of_solver
from pol.roles.submitter.submitter import Submitter
from pol.roles.submitter.submitter_decisions import next_of_submitter
from pol.roles.verifier.verifier import Verifier
from pol.roles.verifier.verifier_decisions import next_of_verifier
from pol.roles.whistleblower.whistleblower import Whistleblower
from pol.roles.whistleblower.whistleblower_decisions import next_of_whistleblower
from pol.training.task.learning_proof import LearningProof

CHEAP = 60
"""Percent that a cheat takes off the price, to win the task."""


class Cheap(Solver):
    """Wins its auctions, until it has lost a task."""

    def require_bid(self, terms: Terms, discount_percent: int = CHEAP, promised: int | None = None) -> Bid:
        if self.market.registry.events("Awarded", solver=self.wallet.address):
            raise ProtocolError("once is enough")
        return super().require_bid(terms, discount_percent, promised)

    def bid(
        self, task_id: bytes, discount_percent: int = CHEAP, promised: int | None = None, recheck: bool = True
    ) -> Bid:
        return super().bid(task_id, discount_percent, promised, recheck)

    def reveal(self, task_id: bytes, discount_percent: int = CHEAP, promised: int | None = None) -> None:
        super().reveal(task_id, discount_percent, promised)


class Jumping(JumpingSolver, Cheap):
    """One segment of its log is false."""

    @cached_property
    def jump(self) -> int:
        return self._random.randrange(self.segments - 1)

    segments = 4


class Hiding(Cheap):
    """Trains, and its states vanish from the store as soon as they are committed to."""

    def commit(self, task_id: bytes, digest: str) -> LearningProof:
        proof = super().commit(task_id, digest)
        folder = Path(self.store.url.removeprefix("file://"))
        for checkpoint in proof.checkpoints[1:]:
            (folder / checkpoint.object[:2] / checkpoint.object).unlink(missing_ok=True)
        return proof


@dataclass(frozen=True)
class Character:
    """A kind of party, and how it decides."""

    name: str
    kind: type[Role]
    decide: Callable[[Any, bytes], Decision]
    tickets: int = 0
    is_honest: bool = True


def without(decide: Callable[[Any, bytes], Decision], *verbs: str) -> Callable[[Any, bytes], Decision]:
    """Decisions of a party that never does some things."""

    def decided(role: Any, task_id: bytes) -> Decision:
        found = decide(role, task_id)
        if isinstance(found, Action) and found.verb in verbs:
            return Wait(task_id, f"it doesn't want to {found.verb}")
        return found

    return decided


HONEST = (
    Character("submitter", Submitter, next_of_submitter),
    Character("solver", Solver, next_of_solver),
    Character("verifier", Verifier, next_of_verifier, tickets=1),
    Character("second verifier", Verifier, next_of_verifier, tickets=1),
    Character("whistleblower", Whistleblower, next_of_whistleblower, tickets=1),
)
CHEATS = (
    Character("jumping solver", Jumping, next_of_solver, is_honest=False),
    Character(
        "hiding solver", Hiding, without(next_of_solver, "show data", "publish the states again"), is_honest=False
    ),
    Character("idle solver", Cheap, without(next_of_solver, "train"), is_honest=False),
    Character("solver that doesn't reveal", Cheap, without(next_of_solver, "reveal"), is_honest=False),
    Character("lying verifier", LyingVerifier, next_of_verifier, tickets=6, is_honest=False),
    Character("idle verifier", Verifier, without(next_of_verifier, "post the verdict"), tickets=6, is_honest=False),
    Character("secretive verifier", Verifier, without(next_of_verifier, "disclose"), tickets=6, is_honest=False),
    Character("baseless whistleblower", BaselessWhistleblower, next_of_whistleblower, tickets=1, is_honest=False),
)


def made(character: Character, random: Random, *arguments: Any, **named: Any) -> Role:
    """The party; a cheat draws from ``random``."""
    cheats = issubclass(character.kind, JumpingSolver | LyingVerifier | BaselessWhistleblower)
    role = character.kind.__new__(character.kind)
    Role.__init__(role, *arguments, **named)
    if cheats:
        vars(role)["_random"] = random
    return role
