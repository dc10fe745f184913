"""The decentralised demo: strangers' processes train one network, one of them cheats, a chain decides.

Nothing is staged: processes are started and killed, the auditor reads the log alone, and a seed drives its draw.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from pol.chain.node.connection import Connection
from pol.commitments.keccak import keccak256
from pol.decentralised.diloco import LOCAL, MERGE, DiLoCo, diloco_plan
from pol.decentralised.parts import small_gpt
from pol.decentralised.processes.local_processes import local_key
from pol.demo.rounds_dispute import SlashReport, StakedRounds, stake_rounds
from pol.demo.scenario_report import dispute_json, ether, one_step_json
from pol.demo.worker_processes import Cast, run_cast
from pol.errors import ProtocolError
from pol.execution.cpu import CpuExecutor
from pol.report.narrator import Narrator
from pol.rounds.auditing.claim_replay import findings_by_replay, load_end, load_phase
from pol.rounds.auditing.drawn_audit import RoundsAudit, audit_claims, drawn_claims, open_rounds
from pol.rounds.auditing.round_audit import Finding
from pol.rounds.log.log_entries import ClaimEntry
from pol.rounds.log.logged_rounds import LoggedRounds
from pol.training.storage.store import Store

OPTIONS = DiLoCo(rounds=5, steps=20, seats=4, sizes=(3, 4))
EVALUATED_ROWS = 256
COORDINATOR = -1
"""Its number among the keys of local workers (`local_key`)."""


@dataclass(frozen=True)
class RoundsReport:
    """The results of the decentralised demo."""

    caught: int
    """Cheats that were found, each with its key, round and phase."""
    accused: int
    """Honest workers that a replay of all claims accuses."""
    is_joiner_equal: bool
    """Whether the late joiner's merged state had the root of all others', from its first round on."""
    is_resumed_equal: bool
    draws: int
    """Claims that were replayed until the lie was found."""
    claims: int
    losses: tuple[float, ...]
    slash: SlashReport
    plan: str
    liar: str
    lying_round: int
    audit: RoundsAudit
    """All claims, replayed."""

    @property
    def kept_its_promises(self) -> bool:
        """Whether every outcome is the one that the protocol promises."""
        roots = self.is_joiner_equal and self.is_resumed_equal
        slashed = self.slash.is_slashed and self.slash.is_balanced
        return self.caught == 1 and self.accused == 0 and roots and slashed

    def to_json(self) -> dict[str, Any]:
        """As ``pol demo --decentralised --json`` prints it."""
        return {
            "cheats_caught": self.caught,
            "honest_accused": self.accused,
            "late_joiner_root_equal": self.is_joiner_equal,
            "resumed_root_equal": self.is_resumed_equal,
            "draws_until_found": self.draws,
            "claims": self.claims,
            "loss_by_round": [round(loss, 4) for loss in self.losses],
            "dispute": dispute_json(self.slash.dispute),
            "one_step": one_step_json(self.slash.dispute),
            "slashed": self.slash.is_slashed,
            "stake_wei": self.slash.stake,
            "reward_wei": self.slash.reward,
            "burnt_wei": self.slash.burnt,
            "plan": self.plan,
            "liar": self.liar,
            "lying_round": self.lying_round,
        }


class RoundsScenario:
    """Runs the decentralised demo in a folder; ``connect`` opens the chain, ``seed`` drives draw and keys."""

    def __init__(
        self,
        connect: Callable[[], Connection],
        folder: Path,
        seed: int,
        narrator: Narrator,
        options: DiLoCo = OPTIONS,
        cast: Cast | None = None,
    ) -> None:
        self._connect, self._folder, self._seed, self._tell = connect, folder, seed, narrator
        self._options, self._cast = options, cast or Cast()

    def run(self) -> RoundsReport:
        """Run the whole story."""
        tell, cast = self._tell, self._cast
        tell.chapter("Three strangers train one GPT: each takes steps of its own, then they merge int8 messages")
        staked, rounds = self._train()
        losses = self._losses(rounds)
        told = " -> ".join(f"{loss:.2f}" for loss in losses)
        tell.say(f"Loss on text that nobody has trained on: {told} nats per character.")
        is_joiner_equal = self._are_merges_equal(rounds, cast.joiner, cast.join_round)
        tell.say(
            f"Every member signs the merge. Worker {cast.joiner}, who came late, has nothing but the plan and the log, "
            f"and {'all its merges have' if is_joiner_equal else 'not all its merges have'} the roots of the others'."
        )
        tell.chapter("An auditor, who trusts nobody, reads the log; roots cost it nothing, replays are drawn")
        lie, draws = self._audit(rounds)
        entry = rounds.claims[lie.claim]
        with tell.progress("replaying all claims, to see whom it would accuse") as advance:
            everything = audit_claims(rounds, list(rounds.claims.values()), is_all_roots=True, advance=advance)
        guilty = local_key(cast.liar).name
        accused = len({finding.worker for finding in everything.findings} - {guilty})
        tell.say(f"A replay of all {len(rounds.claims)} claims accuses {accused} honest workers.")
        tell.chapter("The claim is disputed on a chain, down to one scalar operation")
        slash = self._slash(staked, rounds, entry)
        return RoundsReport(
            caught=len({(f.worker, f.round) for f in everything.lies if f.worker == guilty}),
            accused=accused,
            is_joiner_equal=is_joiner_equal,
            is_resumed_equal=self._are_merges_equal(rounds, cast.victim, cast.kill_round),
            draws=draws,
            claims=len(rounds.claims),
            losses=tuple(losses),
            slash=slash,
            plan=rounds.plan.digest.hex(),
            liar=lie.worker,
            lying_round=lie.round,
            audit=everything,
        )

    def _train(self) -> tuple[StakedRounds, LoggedRounds]:
        tell, cast, options = self._tell, self._cast, self._options
        store = Store(f"file://{self._folder.resolve()}/store")
        with tell.progress("capturing programs"):
            plan = diloco_plan(store, options, local_key(COORDINATOR).name, keccak256(f"{self._seed}".encode()))
        connection = self._connect()
        with tell.progress("deploying contracts, staking"):
            staked = stake_rounds(connection, plan, self._seed, COORDINATOR, len(cast.members))
        plan = staked.plan
        store.put(plan.registration)
        names = ", ".join(f"{m.number}: {local_key(m.number).name[:10]}.." for m in cast.members)
        tell.say(
            f"The plan is {plan.digest.hex()[:16]}: {options.rounds} rounds of {options.steps} steps, a GPT of "
            f"{options.shape.layers} layers. Each worker is a process with a key of its own: {names}."
        )

        tell.say(f"On the {connection.name} the plan is registered, and every worker has staked for its claims.")
        began = time.monotonic()
        with tell.progress("training in processes of their own") as advance:
            run_cast(self._folder.resolve(), plan, options, cast, tell.say, advance)
        rounds = open_rounds(store)
        tell.say(
            f"{options.rounds} rounds are done in {time.monotonic() - began:.0f} seconds. The log has "
            f"{len(rounds.entries)} signed entries: {len(rounds.claims)} claims, rosters, receipts, memberships."
        )
        return staked, rounds

    def _audit(self, rounds: LoggedRounds) -> tuple[Finding, int]:
        """Draw claims of local steps one by one until a replay shows a lie."""
        tell = self._tell
        by_roots = audit_claims(rounds, [], is_all_roots=True)
        tell.say(
            f"Signatures, rosters and the sources of all starts: {len(by_roots.findings)} lies. A false execution "
            "isn't seen in roots: it has to be run again."
        )
        local = [entry for entry in rounds.claims.values() if self._phase(rounds, entry) == LOCAL]
        seed = keccak256(f"pol/demo rounds draw {self._seed}".encode())
        with tell.progress("replaying drawn claims") as advance:
            for done, entry in enumerate(drawn_claims(local, len(local), seed), 1):
                found = list(findings_by_replay(rounds, [entry], CpuExecutor))
                advance(done, len(local))
                if found:
                    self._tell_lie(found[0], done, len(local))
                    return found[0], done
        raise ProtocolError("a worker has lied, and no replay shows it; please report this")

    def _tell_lie(self, lie: Finding, done: int, claims: int) -> None:
        self._tell.say(
            f"Draw {done} of {claims} hits worker {lie.worker}: [bold]{lie.lie.value}[/bold], round {lie.round}, phase "
            f"{lie.phase}. It {lie.detail}. (It did 40 % of its steps, went on in the same direction, and added noise.)"
        )

    def _slash(self, staked: StakedRounds, rounds: LoggedRounds, entry: ClaimEntry) -> SlashReport:
        tell = self._tell
        slash = staked.slash(tell, rounds, entry)
        tell.say(
            f"Of its stake of {ether(slash.stake)} the auditor gets {ether(slash.reward)}. {ether(slash.burnt)} are "
            "burnt, so that nobody gains by catching itself. All other workers keep theirs."
        )
        return slash

    def _are_merges_equal(self, rounds: LoggedRounds, number: int, first: int) -> bool:
        """Whether a worker has merged from a round on, at the latest in the next one, with the roots of all others."""
        merges: dict[int, dict[str, bytes]] = {}
        for entry in rounds.claims.values():
            if self._phase(rounds, entry) == MERGE:
                merges.setdefault(entry.claim.round, {})[entry.worker] = entry.claim.end
        name = local_key(number).name
        own = {round_ for round_, ends in merges.items() if name in ends and round_ >= first}
        is_there = own >= {*range(first + 1, rounds.plan.rounds)}
        return is_there and all(len(set(merges[round_].values())) == 1 for round_ in own)

    def _losses(self, rounds: LoggedRounds) -> list[float]:
        """The loss before the training and after each round, of the merged weights."""
        model = small_gpt.small_gpt(self._options.shape)
        text, following = small_gpt.text_rows(EVALUATED_ROWS, self._options.shape.length, seed=2)
        merged = {e.claim.round: e for e in rounds.claims.values() if self._phase(rounds, e) == MERGE}
        losses = []
        with torch.no_grad():
            losses.append(float(small_gpt.loss(model(text), following)))
            for _, entry in sorted(merged.items()):
                names = load_phase(rounds.store, rounds.plan.phases[entry.claim.phase]).names.slots
                end = {names[slot]: torch.from_numpy(words) for slot, words in load_end(rounds, entry).items()}
                for name, parameter in model.named_parameters():
                    parameter.copy_(end[name].view(torch.float32))
                losses.append(float(small_gpt.loss(model(text), following)))
        return losses

    @staticmethod
    def _phase(rounds: LoggedRounds, entry: ClaimEntry) -> str:
        return rounds.plan.phases[entry.claim.phase].name
