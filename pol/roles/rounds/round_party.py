"""A worker, or the keeper of the log, of one training in rounds: what it answers for on a chain."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable
from functools import cached_property
from pathlib import Path
from typing import Any

from pol.chain.account.gas_fees import FEES, FeePolicy
from pol.chain.account.signers import LocalSigner, Signer
from pol.chain.account.wallet import Wallet
from pol.chain.desks.vault import StakeVault
from pol.chain.node.connection import Connection
from pol.chain.rounds.accusation import Accuser
from pol.chain.rounds.plan_terms import PlanCommitment, require_terms
from pol.chain.rounds.round_contracts import RoundContracts
from pol.chain.rounds.round_demands import RoundDemand, TimedDemands
from pol.chain.rounds.worker_bonds import Standing
from pol.dispute.play.kept_traces import KeptTraces
from pol.dispute.play.round_evidence import trace_of
from pol.errors import OperationalError, ProtocolError
from pol.execution.cpu import on_all_cores
from pol.execution.executor import ExecutorFactory
from pol.roles.party.kept_store import KeptStore
from pol.roles.party.party import Party
from pol.roles.process.obligations import final_ones
from pol.roles.process.party_process import PartyProcess
from pol.roles.rounds.kept_rounds import KeptRounds
from pol.roles.rounds.pay_state import Course
from pol.rounds.auditing.round_audit import Finding, Lie, findings_by_roots
from pol.rounds.log.journaled_keeper import require_keeper_journal
from pol.rounds.log.log_entries import ClaimEntry
from pol.rounds.log.logged_rounds import LoggedRounds
from pol.training.storage.party_database import PartyDatabase

KEPT_BYTES = 8 << 30
"""Of executions in memory, as in the market."""


class RoundParty(Party):
    """A worker, or with ``keeps`` the coordinator, of the plan that is registered as ``plan_id``.

    All that it answers with lies in ``folder``, its own: what it has read of the store of the training.

    Args:
        leaves: take the stake back as soon as nothing is open.

    Raises:
        ProtocolError: plan or key aren't those of the registration; or something is missing that a demand or a dispute
            may ask for, and it has no stake yet. The message says what to do.
    """

    def __init__(
        self,
        connection: Connection,
        contracts: RoundContracts,
        key: bytes | Signer,
        store_url: str,
        plan_id: bytes,
        folder: Path,
        keeps: bool = False,
        leaves: bool = False,
        fees: FeePolicy = FEES,
        executors: ExecutorFactory = on_all_cores,
    ) -> None:
        self.connection, self.contracts, self.plan_id, self.leaves = connection, contracts, plan_id, leaves
        self.wallet = Wallet(connection, LocalSigner(key) if isinstance(key, bytes) else key, policy=fees)
        self.executors, self.keeps = executors, keeps
        self.store: KeptStore = KeptStore(store_url, PartyDatabase(folder), f"rounds/{plan_id.hex()[:16]}")
        self.name = self.wallet.address.lower()
        self.terms = contracts.bonds.terms(plan_id)
        self._require_key()
        registration = contracts.bonds.registration(plan_id)
        self.kept = KeptRounds(self.store, registration, self.name, executors)
        self.commitment = PlanCommitment.of(self.kept.plan)
        require_terms(self.terms, self.commitment)
        self.problems: list[str] = []
        """What couldn't be read, or answered, at the last look."""
        self.tried: Counter[str] = Counter()
        """How often in a row an action has failed, by its reason: others come first."""
        self.refused: dict[Finding, str] = {}
        """Lies of others that no contract decides, and why."""
        self._found: tuple[object, LoggedRounds, list[Finding]] | None = None
        self._right = set[bytes]()
        """Claims and rosters of the log that were found to be right."""
        self._traces: KeptTraces[bytes] = KeptTraces(KEPT_BYTES)
        self.require_answers()

    @property
    def vault(self) -> StakeVault:
        """The vault of rounds."""
        return self.contracts.vault

    @cached_property
    def accuser(self) -> Accuser:
        """This party, as it brings evidence before the contracts."""
        return Accuser(self.contracts, self.wallet, self.plan_id, self.commitment)

    def require_answers(self, stakes: bool = False) -> None:
        """Check that the folder has all that may be asked for: when the process starts, and before it ``stakes``.

        Who has a stake starts with what it has: without it nothing is answered, and ``problems`` tell the rest.

        Raises:
            ProtocolError: it hasn't.
            OperationalError: what it stakes on can't be read.
        """
        if self.keeps:
            try:
                require_keeper_journal(self.store, self.plan_id, self.name)
            except OperationalError:  # who has staked goes on with the copies
                if stakes or self.kept.head is None:
                    raise
        self.refresh()
        if not stakes and _has_stake(self):
            return
        if self.kept.unanswerable:
            raise ProtocolError(self.kept.unanswerable[0])
        if stakes and self.kept.troubles:
            raise OperationalError(f"no stake is put up: {self.kept.troubles[0]}")
        with self.about(self.plan_id):
            self.store.require_kept()

    def refresh(self) -> None:
        """Copy what log and journal have by now."""
        self.kept.refresh()
        self.problems = [*self.kept.unanswerable, *self.kept.troubles]

    def session_trace(self, entry: ClaimEntry) -> Any:
        """This party's execution of a claim, from its copies."""
        return self._traces.get(entry.claim.digest, lambda: trace_of(self.kept.rounds, entry, self.executors))

    def findings(self) -> tuple[LoggedRounds, list[Finding]]:
        """The lies of others in log and journal, by roots alone: looked for when either has changed."""
        kept = self.kept
        state = (kept.head, len(kept.rounds.entries))
        if self._found is None or self._found[0] != state:
            rounds = kept.suspect()
            found = findings_by_roots(rounds, receipts=kept.receipts, known=self._right)
            lies = [each for each in found if each.worker != self.name and each.lie is not Lie.WITHHELD]
            self.refused = {each: why for each, why in self.refused.items() if each in lies}
            # A receipt comes before the head that holds its claim, within its round.
            left_out, newest = [each for each in lies if each.lie is Lie.OMISSION], max(kept.logged.rosters, default=0)
            self.refused |= {each: "its author demands it" for each in left_out if each.round < newest}
            self._found = (state, rounds, [each for each in lies if each not in left_out])
        return self._found[1:]

    def demands(self) -> list[tuple[TimedDemands, RoundDemand]]:
        """The open demands against this party, the most urgent first."""
        desks: list[TimedDemands] = [self.contracts.demands, self.contracts.shares]
        found = [(desk, demand) for desk in desks for demand in desk.demands(self.plan_id)]
        own = [each for each in found if each[1].accused == self.wallet.address]
        return sorted(own, key=lambda each: each[1].deadline)

    def open_disputes(self) -> list[dict[str, Any]]:
        """The events of the disputes about claims of the plan that aren't paid out, in which this party plays."""
        desk, own = self.contracts.disputes, self.wallet.address
        ended = {int(event["number"]) for event in desk.events("ClaimDecided", id=self.plan_id)}
        disputed = [e for e in desk.events("ClaimDisputed", id=self.plan_id) if int(e["number"]) not in ended]
        return [event for event in disputed if own in (event["worker"], event["challenger"])]

    def state(self) -> dict[str, Any]:
        """What /health says of it."""
        bond, course = self.bond(), Course.of(self.contracts, self.plan_id)
        owned = self.contracts.shares.owned(self.plan_id, self.wallet.address)
        return {
            "plan": self.plan_id.hex(),
            "standing": bond.standing.name.lower(),
            "stake": bond.stake,
            "accusations": bond.open,
            "demands": len(self.demands()),
            "disputes": len(self.open_disputes()),
            "settlements": course.opened,
            "units": owned.units,
            "log": 0 if self.kept.head is None else self.kept.head.size,
            "claims": len(self.kept.owed),
            "problems": self.problems,
            "lies": [f"{finding}: {why}" for finding, why in self.refused.items()],
        }

    def bond(self) -> Any:
        """This party's stake."""
        return self.contracts.bonds.bond(self.plan_id, self.wallet.address)

    def _require_key(self) -> None:
        if self.keeps != (self.wallet.address == self.terms.coordinator):
            other = "worker" if self.keeps else "keeper"
            raise ProtocolError(
                f"{self.wallet.address} {'is not' if self.keeps else 'is'} the coordinator of plan "
                f"{self.plan_id.hex()}: give its key, or run a {other} (`pol run {other}`)"
            )


class PlanProcess(PartyProcess[RoundParty]):
    """Runs a party of rounds, whose only task is its plan."""

    def _known(self) -> Iterable[bytes]:
        return [self.role.plan_id]

    def _disputed(self) -> set[bytes]:
        return {self.role.plan_id} if self.role.demands() or self.role.open_disputes() else set()

    def _progress(self) -> Counter[bytes]:
        bonds, shares = self.role.contracts.bonds, self.role.contracts.shares
        events = [
            *bonds.events("Accused", id=self.role.plan_id),
            *shares.events("SettlementOpened", id=self.role.plan_id),
        ]
        return Counter({self.role.plan_id: len(events)})

    def _has_stake(self, task_id: bytes) -> bool:
        return _has_stake(self.role)

    def _reading_seconds(self, task_id: bytes) -> float:
        # A demand or a dispute may come at any time; in the last half of a window lengths are said.
        return min(self.role.terms.answer_window, self.role.terms.clock) / 4

    def _final(self, task_ids: Collection[bytes]) -> set[bytes]:
        ended = {"id": self.role.plan_id, "worker": self.role.wallet.address}
        events = [e for name in ("Departed", "Slashed") for e in self.role.contracts.bonds.events(name, **ended)]
        return final_ones(self.role.connection, {task_id: int(events[-1]["block"]) for task_id in task_ids if events})


def _has_stake(role: RoundParty) -> bool:
    """Whether a party has something to lose."""
    return role.bond().standing in {Standing.JOINED, Standing.LEAVING}
