"""The demo: one story over three tasks, told while it happens. Nothing in it is staged; a seed moves everything.

The roles are handed a connection, a key and the store's address, never an object of another role.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from random import Random
from typing import TypedDict

import numpy as np
import torch
from rich.markup import escape

from pol.chain.account.wallet import Wallet
from pol.chain.court.dispute_game import packed
from pol.chain.deploy.deployment import Deployment, deploy
from pol.chain.deployment_rules import FUND as FUND_POT
from pol.chain.deployment_rules import MarketRules, Settings
from pol.chain.desks.task_registry import TaskOutcome
from pol.chain.node.connection import Connection
from pol.claims.acceptance_rule import relative_distance, relative_limit
from pol.demo import digits
from pol.demo.cast import ETHER, FUND, PARTIES, Balance, Purse, balances
from pol.demo.cheating_parties import BaselessWhistleblower, LyingVerifier, SkippingSolver
from pol.demo.scenario_report import DisputeReport, Report, ether
from pol.dispute.moves import ProveStep
from pol.dispute.position import Side
from pol.dispute.rules import apply, picked
from pol.dispute.state_hash import state_hash
from pol.errors import OperationalError, ProtocolError
from pol.graph.capture import Capture
from pol.graph.node_names import ProgramNames
from pol.incentives.forced_errors import LARGEST_RATE
from pol.report.last_operation import OneStep, one_step, shown
from pol.report.move_descriptions import HEADING, Row, line, opening_row, resignation_row, row, who
from pol.report.narrator import Narrator
from pol.roles.party.dispute_session import Duel, MoveMade
from pol.roles.party.policy import HOUR, PUBLIC_CHAIN, TEST_NETWORK, Policy
from pol.roles.party.role import Role
from pol.roles.solver.solver import Solver
from pol.roles.submitter.submitter import Offer, Submitter
from pol.roles.verifier.verifier import Verifier
from pol.roles.whistleblower.whistleblower import Finding, Whistleblower
from pol.training.task.learning_proof import LearningProof, load_checkpoint
from pol.verification.verdict.verdict import Outcome, Verdict

MODEL = "MLP 64-64-10 on the UCI handwritten digits, cross-entropy"
OPTIMIZER = "torch.optim.SGD(lr=0.05, momentum=0.9)"
TEST_FUNDS = 100 * ETHER
LIVE_WINDOWS = {
    "profile_window": 60,
    "bid_window": 60,
    "seat_window": 60,
    "watch_window": 120,
    "disclosure_window": 60,
    "challenge_window": 240,
    "clock": 600,
}
"""Seconds, on a chain whose time can't be moved."""
TICKETS = 40
"""Of each party that may be drawn; their bonds are a twentieth of what it brings."""
RIVAL_DISCOUNT = 10
"""Percent that the second bid lies below the maximum: less than the first, which wins."""
LIVE_PRICE, LIVE_GAS = 1000, 30_000_000
"""Wei per work unit, and gas that every party can pay for, on a chain whose money isn't free."""


class Party(TypedDict):
    """What a party is given: nothing of another party."""

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
    cheating_solver: SkippingSolver
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


class Story:
    """Runs the demo.

    Args:
        connect: opens a new connection to the chain, one for each party.
        store_url: fsspec URL of the store that all parties read.
        seed: moves data order, draws, the cheating and the lie.
        narrator: is told what happens.
        funder_key: pays for the parties where the node unlocks no account.
    """

    def __init__(
        self,
        connect: Callable[[], Connection],
        store_url: str,
        seed: int,
        narrator: Narrator,
        funder_key: bytes | None = None,
    ) -> None:
        self._connect = connect
        self._store_url = store_url
        self._seed = seed
        self._tell = narrator
        self._connection = connect()
        self._planted = 0
        self._found: dict[tuple[bytes, int], Finding] = {}
        if self._connection.is_test_chain:
            # Short beside the challenge window: the first verdict is challenged after the profiles of two more tasks.
            self._offer = Offer(digits.STEPS, digits.INTERVAL, profile_window=HOUR)
            self._purse = Purse(seed, TEST_FUNDS, funder_key)
        else:
            self._offer = Offer(digits.STEPS, digits.INTERVAL, wei_per_work_unit=LIVE_PRICE, **LIVE_WINDOWS)
            self._purse = Purse(seed, LIVE_GAS * self._connection.gas_price(), funder_key)

    @property
    def _part(self) -> int:
        """What a party brings into the vault; the rest is for gas."""
        return self._purse.each * 4 // 5

    def run(self) -> Report:
        """The whole story.

        Raises:
            OperationalError: chain or store failed.
            ProtocolError: something went another way than the protocol promises.
        """
        captured = digits.captured(self._seed)
        deployer, deployment = self._deploy()
        cast = self._cast(deployment)
        before = {party: self._connection.balance(self._purse.address(party)) for party in PARTIES}
        before["deployer"] += deployer.gas_paid
        donated = self._enter(cast, deployer)
        before["deployer"] -= donated

        self._tell.chapter("A submitter puts a task on chain")
        first = self._submit(cast.submitter, captured)
        self._tell.chapter("A verifier is drawn and profiles how far honest executions part")
        self._profile(cast.verifier, first)
        self._tell.chapter("Solvers bid; the cheaper one trains with stock torch and commits a learning proof")
        accuracy = self._train(cast.solver, first, rival=cast.cheating_solver)
        self._tell.chapter("A beacon draws segments and who replays them; others watch; the chain compares")
        accepted = self._verify(cast.verifier, cast.whistleblower, first)

        self._tell.chapter("A second solver skips a tenth of its steps")
        second = self._submit(cast.submitter, captured)
        self._profile(cast.verifier, second)
        self._train(cast.cheating_solver, second)
        rejected = not self._verify(cast.verifier, cast.whistleblower, second)

        self._tell.chapter("A lying verifier flips one bit of one scalar in a backward pass")
        third = self._submit(cast.submitter, captured)
        self._profile(cast.lying_verifier, third)
        self._train(cast.solver, third)
        self._verify(cast.lying_verifier, cast.whistleblower, third)
        dispute = self._dispute(cast.lying_verifier, cast.whistleblower, third)
        self._tell.say("The seat is drawn anew. Another verifier posts the corrected verdict.")
        self._verify(cast.verifier, cast.whistleblower, third)

        self._tell.chapter("A whistleblower challenges an honest verdict")
        false_dispute = self._dispute(cast.verifier, cast.false_challenger, third)

        self._tell.chapter("Settlement")
        settled = [self._settle(cast.submitter, task_id) for task_id in (first, second, third)]
        catches = self._collect(cast.whistleblower)
        wallets, market = cast.wallets(deployer), cast.submitter.market
        for role in cast.roles:
            role.withdraw()
        rows = balances(wallets, before, market.vault)
        rows.append(Balance(FUND, donated, market.vault.pot(market.jackpot.address, FUND_POT), 0))
        change = {row.party: row.change for row in rows}
        report = Report(
            accepted=accepted and settled[0] is TaskOutcome.ACCEPTED,
            cheating_solver_rejected=rejected and settled[1] is TaskOutcome.REJECTED,
            lying_verifier_slashed=dispute.winner == "challenger" and change["lying verifier"] < 0,
            false_challenger_slashed=false_dispute.winner == "asserter" and change["false challenger"] < 0,
            settled=tuple(outcome.name.lower() for outcome in settled),
            dispute=dispute,
            false_dispute=false_dispute,
            balances=tuple(rows),
            planted=self._planted,
            catches=catches,
            accuracy=accuracy,
            deployment=deployment,
            task_document=market.registry.terms(third).document.hex(),
            proofs=(self._proof_digest(cast, third),) * 2,
        )
        self._tell_balances(report)
        self._purse.collect(wallets.values())
        return report

    @staticmethod
    def _proof_digest(cast: Cast, task_id: bytes) -> str:
        committed = cast.submitter.market.proofs.events("ProofCommitted", taskId=task_id)
        return bytes(committed[-1]["proofDigest"]).hex()

    # --- preparations -------------------------------------------------------------------------------------------------

    def _deploy(self) -> tuple[Wallet, Deployment]:
        each = self._purse.each / ETHER
        self._tell.say(f"Chain: {self._connection.name}. Contracts are deployed; every party gets {each:g} ether.")
        self._purse.fund(self._connection)
        deployer = Wallet.create(self._connect(), self._purse.key("deployer"))
        rules = MarketRules(rate=LARGEST_RATE, unit=self._part // 20 // TICKETS)
        return deployer, deploy(deployer, Settings(deployer.address, market=rules))

    def _cast(self, deployment: Deployment) -> Cast:
        # Where time can't be moved the windows are as short as the contract admits, which no policy for real money is.
        policy = PUBLIC_CHAIN if self._connection.is_test_chain else TEST_NETWORK

        def party(name: str) -> Party:
            return {
                "connection": self._connect(),
                "deployment": deployment,
                "key": self._purse.key(name),
                "store_url": self._store_url,
                "policy": policy,
            }

        def random(name: str) -> Random:
            return Random(f"{self._seed} {name}")

        return Cast(
            submitter=Submitter(**party("submitter")),
            solver=Solver(**party("honest solver")),
            cheating_solver=SkippingSolver(**party("cheating solver"), random=random("cheating solver")),
            verifier=Verifier(**party("honest verifier")),
            lying_verifier=LyingVerifier(**party("lying verifier"), random=random("lying verifier")),
            whistleblower=Whistleblower(**party("whistleblower")),
            false_challenger=BaselessWhistleblower(**party("false challenger"), random=random("false challenger")),
        )

    def _enter(self, cast: Cast, deployer: Wallet) -> int:
        """Money comes into the vault, the fund gets some, verifiers and watchers get tickets; what the fund got."""
        market, part, donated = cast.submitter.market, self._part, self._part // 2
        market.vault.deposit(deployer, donated)
        market.jackpot.donate(deployer, donated)
        for role in cast.roles:
            role.deposit(part)
        for role in (cast.verifier, cast.lying_verifier, cast.whistleblower):
            market.sortition.enrol(role.wallet, TICKETS)
        # They count from the next second on; a node of one's own is quicker than that.
        self._connection.wait_until(self._connection.now())
        bond = ether(TICKETS * market.sortition.unit())
        self._tell.say(
            f"Every party brings {ether(part)} into the vault: all stakes come from there. The deployer gives "
            f"{ether(donated)} to the fund, from which those are paid who find errors. Two verifiers and the "
            f"whistleblower lock {bond} each for {TICKETS} tickets, by which seats and watchers are "
            "drawn. One verdict in four has to be wrong on purpose, so that somebody looks; only its verifier knows."
        )
        return donated

    # --- the moves of the protocol ------------------------------------------------------------------------------------

    def _submit(self, submitter: Submitter, captured: Capture) -> bytes:
        task_id = submitter.submit(captured, self._offer, MODEL, OPTIMIZER)
        terms = submitter.market.registry.terms(task_id)
        escrow = submitter.market.settlement.escrow_of(terms)
        self._tell.say(
            f"Task {task_id.hex()[:12]}: {MODEL}; {OPTIMIZER}. Captured from ordinary PyTorch code into "
            f"{len(captured.program.nodes)} nodes; program hash {terms.program.hex()[:12]}."
        )
        self._tell.say(
            f"{terms.steps} steps are {terms.work_units:,} work units: {ether(escrow)} are in escrow, "
            f"the solver has to stake {ether(terms.solver_stake)}."
        )
        return task_id

    def _profile(self, verifier: Verifier, task_id: bytes) -> None:
        self._seat(verifier, task_id)
        with self._tell.progress("reruns with other reduction orders"):
            profile = verifier.profile(task_id)
        spread, threshold = ([f"{relative_limit(x):.1e}" for x in row] for row in (profile.spreads, profile.thresholds))
        claim = profile.claim
        self._tell.say(
            f"{len(claim.reruns)} seeded reruns in other reduction orders part by at most {spread[0]} (parameters) and "
            f"{spread[2]} (optimizer state) of the distance travelled; thresholds {threshold[0]} and {threshold[2]}. A "
            f"fresh rerun stays inside with probability >= {profile.coverage}, before a margin of {claim.margin}."
        )
        deadline = verifier.market.profiles.standing(task_id).deadline
        hours = verifier.market.registry.terms(task_id).profile_window / 3600
        waiting = "the chain's clock is moved past it" if self._connection.is_test_chain else "everybody waits"
        self._tell.say(
            f"Whoever measures something else has {hours:.3g} hours to convict the profile; nobody bids for the task "
            f"before: {waiting}."
        )
        verifier.connection.wait_until(deadline)
        verifier.market.profiles.conclude(verifier.wallet, task_id)

    def _seat(self, verifier: Verifier, task_id: bytes) -> None:
        ticket = verifier.claim_seat(task_id)
        if not verifier.take_seat(task_id):
            raise ProtocolError("a seat that only one party claimed went to another; please report this")
        seating = verifier.market.registry.task(task_id).seating
        self._tell.say(f"Ticket {ticket} has the smallest rank of those that claim seat {seating}: its holder sits.")

    def _train(self, solver: Solver, task_id: bytes, rival: Solver | None = None) -> float:
        solver.bid(task_id)
        if rival is not None:
            # Its bid is there to lose: what it would stake on doesn't matter.
            rival.bid(task_id, RIVAL_DISCOUNT, recheck=False)
            rival.reveal(task_id, RIVAL_DISCOUNT)
        solver.reveal(task_id)
        solver.market.registry.award(solver.wallet, task_id)
        price = solver.market.registry.task(task_id).price
        paid = "the maximum, as nobody else bids" if rival is None else "what the next one would have been content with"
        self._tell.say(f"Bids are sealed, then revealed. The lowest wins and is paid {ether(price)}: {paid}.")
        with self._tell.progress("training with stock torch") as advance:
            proof = solver.train(task_id, advance)
        accuracy = self._accuracy(solver, task_id, proof)
        progress = len(solver.market.proofs.events("ProgressPosted", taskId=task_id))
        self._tell.say(
            f"The solver posted its checkpoint log {progress} times while training and committed "
            f"{len(proof.checkpoints)} state roots (log root {proof.log_root.hex()[:12]}). The model "
            f"classifies {accuracy:.1%} of the scans correctly."
        )
        return accuracy

    def _accuracy(self, solver: Solver, task_id: bytes, proof: LearningProof) -> float:
        task = solver.task(task_id)
        words = load_checkpoint(solver.store, task, proof.checkpoints[-1])
        model = digits.build_model(self._seed)
        named = {n: torch.from_numpy(w.view(np.float32).copy()) for n, w in zip(task.names.slots, words, strict=True)}
        model.load_state_dict({name: named[name] for name in model.state_dict()})
        return digits.accuracy(model)

    def _verify(self, verifier: Verifier, watcher: Whistleblower, task_id: bytes) -> bool:
        self._seat(verifier, task_id)
        with self._tell.progress("replaying the drawn segments"):
            verdicts = verifier.verify(task_id)
        self._tell_verdicts(verdicts, verifier.thresholds(task_id))
        verifier.open_watch(task_id)
        self._watch(watcher, task_id)
        verifier.connection.wait_until(verifier.market.verdicts.verdict(task_id).watch_until)
        planted = verifier.disclose(task_id)
        self._planted += planted
        accepted = verifier.market.verdicts.verdict(task_id).rejecting == 0
        word = "[green]accepts[/green]" if accepted else "[red]rejects[/red]"
        duty = "had to plant an error, and puts the true claim in its place" if planted else "didn't have to err"
        self._tell.say(f"The watch is over: the verifier discloses that it {duty}. The contract compares and {word}.")
        if accepted != all(v.outcome is Outcome.ACCEPTED for v in verdicts):
            raise ProtocolError("the contract and the verifier read the same distances differently; please report this")
        return accepted

    def _watch(self, watcher: Whistleblower, task_id: bytes) -> None:
        """Who is drawn replays the segments too, and seals what it finds until the task is closed."""
        tickets = len(watcher.watched(task_id))
        if not tickets:
            self._tell.say("None of the whistleblower's tickets is drawn to watch this verdict.")
            return
        with self._tell.progress("replaying what the verifier says"):
            findings = watcher.watch(task_id)
        found = "finds nothing wrong"
        if findings:
            found = f"seals the root that it gets for segment {findings[0].claim.segment}, where the verifier errs"
            self._found[task_id, watcher.market.registry.task(task_id).seating] = findings[0]
        self._tell.say(f"{tickets} of the whistleblower's tickets are drawn to watch: it replays too, and {found}.")

    def _collect(self, watcher: Whistleblower) -> int:
        """What was found in tasks that are closed now is paid."""
        paid = sum(watcher.collect(*place, finding.index) for place, finding in self._found.items())
        if paid:
            (task_id, _), *_ = self._found
            shares = int(watcher.market.jackpot.read("shares"))
            share = watcher.market.registry.terms(task_id).jackpot // shares
            errors = "an error" if paid == 1 else f"{paid} errors"
            self._tell.say(f"The whistleblower had named {errors} before anybody else: {ether(share)} for each share.")
        return paid

    def _dispute(self, defender: Verifier, attacker: Whistleblower, task_id: bytes) -> DisputeReport:
        findings = attacker.check(task_id)
        if not findings:
            raise ProtocolError("the whistleblower finds nothing wrong in a verdict with a lie; please report this")
        bond = ether(attacker.market.challenges.bond_of(task_id))
        dispute = attacker.challenge(task_id, findings[0])
        self._tell.say(
            f"A challenger puts up {bond} against the replay of segment {findings[0].claim.segment} and opens its own "
            "version. Now both sides move in turn: pick the first part that is wrong, open one's own."
        )
        sides = (defender.defend(task_id), attacker.attack(task_id, findings[0], dispute))
        program = attacker.task(task_id).program
        self._tell.say(f"{HEADING}{'gas':>8}")
        self._tell_row(opening_row(sides[0].game.record(dispute, program).start), 0)
        made = self._play(sides, dispute)
        game, moves = sides[0].game, tuple(m.move for m in made if m.move is not None)
        record, params = replace(game.record(dispute, program), moves=moves), game.params(dispute)
        players = (packed(params.asserter), packed(params.challenger))
        report = DisputeReport(
            task_id=task_id,
            dispute=dispute,
            winner=who(game.winner(dispute)),
            ended_by="proof" if made[-1].move is not None else "resignation",
            rows=tuple(row_of(m) for m in made),
            gas=tuple(gas_of(m) for m in made),
            record=record,
            heads=tuple(state_hash(m.position, players[m.position.turn is Side.CHALLENGER]) for m in made),
            players=players,
            one_step=self._one_step(made[-1], sides, attacker.task(task_id).names),
        )
        if report.one_step is not None:
            self._tell_one_step(report.one_step, report)
        loser = "the verifier's stake is slashed" if report.winner == "challenger" else "the challenger loses its bond"
        self._tell.say(f"The {report.winner} wins after {len(made)} transactions and {sum(report.gas):,} gas: {loser}.")
        return report

    def _play(self, sides: tuple[Duel, Duel], dispute: int) -> list[MoveMade]:
        made: list[MoveMade] = []
        while sides[0].game.winner(dispute) is Side.NONE:
            move = sides[0].advance() or sides[1].advance()
            if move is None:
                raise OperationalError(f"neither side of dispute {dispute} is on turn; is the node in sync?")
            made.append(move)
            self._tell_row(row_of(move), gas_of(move))
        return made

    def _one_step(self, last: MoveMade, sides: tuple[Duel, Duel], names: ProgramNames) -> OneStep | None:
        """What decided: a proof, or the one that the losing side would have had to make."""
        if isinstance(last.move, ProveStep):
            found = one_step(last.position, last.move, names)
            self._require_executed(found, sides[0])
            return found
        if isinstance(last.upheld, ProveStep):
            loser = sides[0] if last.position.turn is Side.ASSERTER else sides[1]
            own = replace(last.position, opened=loser.player.open(last.position))
            claimed = int.from_bytes(picked(own, last.upheld.index), "big")
            return one_step(last.position, last.upheld, names, claimed)
        return None

    @staticmethod
    def _require_executed(found: OneStep, side: Duel) -> None:
        (refuted,) = side.game.events("Refuted", number=side.dispute)
        words = [int.from_bytes(bytes(refuted["detail"])[i : i + 4], "big") for i in (13, 17)]
        if words != [found.claimed, found.computed]:
            raise ProtocolError("the contract and the library compute different results; please report this")

    def _settle(self, submitter: Submitter, task_id: bytes) -> TaskOutcome:
        registry = submitter.market.registry
        submitter.connection.wait_until(registry.task(task_id).deadline)
        submitter.market.settlement.settle(submitter.wallet, task_id)
        outcome = registry.task(task_id).outcome
        self._tell.say(f"Task {task_id.hex()[:12]} is settled: {outcome.name.lower()}.")
        return outcome

    # --- what is told -------------------------------------------------------------------------------------------------

    def _tell_verdicts(self, verdicts: list[Verdict], thresholds: tuple[int, int, int]) -> None:
        rows = []
        for verdict in verdicts:
            if (claim := verdict.claim) is None:
                continue
            for name, c in (("parameters", 0), ("optimizer state", 2)):
                relative = relative_distance(claim.distances[c], claim.references[c])
                row = (f"segment {claim.segment}, {name}", f"{relative:.2e}", f"{relative_limit(thresholds[c]):.2e}")
                rows.append((*row, verdict.outcome.name.lower()))
        columns = ("", "distance", "threshold", "verdict")
        self._tell.table("Distances, relative to the distance travelled", columns, rows)

    def _tell_row(self, told: Row, gas: int) -> None:
        self._tell.say(f"[dim]{escape(line(told, gas))}[/dim]")

    def _tell_one_step(self, one: OneStep, report: DisputeReport) -> None:
        loser = "verifier" if report.winner == "challenger" else "challenger"
        self._tell.say(f"step {one.step}, node [bold]{escape(one.node)}[/bold], from: {escape(one.source)}")
        self._tell.say(f"{one.place}: [bold]{escape(one.expression)}[/bold]")
        self._tell.say(f"the {loser} claimed {shown(one.claimed, one.op)}")
        if report.ended_by == "proof":
            self._tell.say(f"the EVM computes     {shown(one.computed, one.op)}   ({report.gas[-1]:,} gas)")
        else:
            self._tell.say(f"the EVM computes     {shown(one.computed, one.op)}   and refuses the {loser}'s proof")

    def _tell_balances(self, report: Report) -> None:
        def amounts(*wei: int) -> tuple[str, ...]:
            return tuple(f"{amount / ETHER:,.6f}" for amount in wei)

        rows = [(b.party, *amounts(b.before, b.after, b.locked, b.change, b.gas)) for b in report.balances]
        gas = sum(b.gas for b in report.balances)
        rows.append(("together", "", "", "", *amounts(report.total_change_wei, gas)))
        columns = ("party", "before", "after", "tickets", "change", "gas paid")
        self._tell.table("Balances in ETH; change: after + tickets + gas - before", columns, rows)


def row_of(made: MoveMade) -> Row:
    """What a side did, in words."""
    if made.move is None:
        return resignation_row(made.position)
    return row(made.position, made.move, apply(made.position, made.move))


def gas_of(made: MoveMade) -> int:
    """Gas of a transaction; 0 if it was made before, and its receipt got lost."""
    return int(made.receipt["gasUsed"]) if made.receipt is not None else 0
