"""The demo: one scenario over two tasks, narrated while it runs. Nothing is staged; a seed drives everything.

Each role gets a connection, a key and the store's URL, and no object of another role.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import torch

from pol.chain.account.wallet import Wallet
from pol.chain.deployment_rules import FUND as FUND_POT
from pol.chain.deployment_rules import MarketRules, Settings
from pol.chain.deployments.deployment import Deployment, deploy
from pol.chain.desks.task_registry import TaskOutcome
from pol.chain.node.connection import Connection
from pol.claims.acceptance_rule import relative_distance, relative_limit
from pol.demo import digits
from pol.demo.funding import ETHER, FUND, PARTIES, Balance, Purse, balances
from pol.demo.narrated_dispute import narrated_challenge, narrated_objection
from pol.demo.parties import Cast, assemble
from pol.demo.scenario_report import ObjectionReport, ScenarioReport, ether
from pol.errors import ProtocolError
from pol.graph.capture import Capture
from pol.incentives.forced_errors import LARGEST_RATE
from pol.report.narrator import Narrator
from pol.roles.party.policy import PUBLIC_CHAIN, TEST_NETWORK
from pol.roles.solver.solver import Solver
from pol.roles.submitter.submitter import TOLERANT, Offer, Submitter
from pol.roles.verifier.verifier import Verifier
from pol.roles.whistleblower.whistleblower import FalseClaim, Whistleblower
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
"""Tickets of each party that may be drawn; their bonds are a twentieth of its deposit."""
RIVAL_DISCOUNT = 10
"""Percent that the losing bid lies below the maximum: less than the winning one."""
LIVE_PRICE, LIVE_GAS = 1000, 30_000_000
"""Wei per work unit, and gas of every party, on a chain with real money."""


class Scenario:
    """Runs the demo.

    Args:
        connect: opens a new connection to the chain; each party has its own.
        store_url: fsspec URL of the common store.
        seed: drives data order, draws, the cheating and the lie.
        narrator: receives the narration.
        funder_key: pays for the parties if the node has no unlocked account.
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
        self._found: dict[tuple[bytes, int], FalseClaim] = {}
        if self._connection.is_test_chain:
            self._offer = Offer(digits.STEPS, digits.INTERVAL)
            self._purse = Purse(seed, TEST_FUNDS, funder_key)
        else:
            self._offer = Offer(digits.STEPS, digits.INTERVAL, wei_per_work_unit=LIVE_PRICE, **LIVE_WINDOWS)
            self._purse = Purse(seed, LIVE_GAS * self._connection.gas_price(), funder_key)

    @property
    def _part(self) -> int:
        """A party's deposit into the vault; the rest is for gas."""
        return self._purse.each * 4 // 5

    def run(self) -> ScenarioReport:
        """Run the whole scenario."""
        captured = digits.captured(self._seed)
        deployer, deployment = self._deploy()
        # Where time can't be moved, windows are as short as the contract admits; no policy for real money accepts that.
        policy = PUBLIC_CHAIN if self._connection.is_test_chain else TEST_NETWORK
        cast = assemble(deployment, self._connect, self._purse, self._store_url, policy)
        before = {party: self._connection.balance(self._purse.address(party)) for party in PARTIES}
        before["deployer"] += deployer.gas_paid
        donated = self._enter(cast, deployer)
        before["deployer"] -= donated

        self._tell.chapter("A submitter asks for an exact training: every segment is true or false, bit for bit")
        first = self._submit(cast.submitter, captured, self._offer)
        self._tell.chapter("A solver trains canonically, but jumps to a dead network in one segment")
        self._train(cast.cheating_solver, first)
        self._tell.chapter("A beacon draws segments and a verifier; others watch; the chain compares")
        passed = self._verify(cast.verifier, cast.whistleblower, first)
        self._tell.chapter("A whistleblower looks at all checkpoints, and objects")
        objection = self._object(cast.whistleblower, cast.cheating_solver, first, passed)

        self._tell.chapter("A second task is for stock torch; a verifier profiles how much honest runs diverge")
        second = self._submit(cast.submitter, captured, replace(self._offer, margin=TOLERANT))
        self._profile(cast.lying_verifier, second)
        self._tell.chapter("Solvers bid; the cheaper one trains with stock torch and commits a learning proof")
        accuracy = self._train(cast.solver, second, rival=cast.cheating_solver)

        self._tell.chapter("A lying verifier flips one bit of one scalar in a backward pass")
        self._verify(cast.lying_verifier, cast.whistleblower, second)
        dispute = narrated_challenge(self._tell, cast.lying_verifier, cast.whistleblower, second)
        self._tell.say("The seat is drawn anew. Another verifier posts the corrected verdict.")
        accepted = self._verify(cast.verifier, cast.whistleblower, second)

        self._tell.chapter("A whistleblower challenges an honest verdict")
        false_dispute = narrated_challenge(self._tell, cast.verifier, cast.false_challenger, second)

        self._tell.chapter("Settlement")
        settled = [self._settle(cast.submitter, task_id) for task_id in (first, second)]
        catches = self._collect(cast.whistleblower)
        wallets, market = cast.wallets(deployer), cast.submitter.market
        for role in cast.roles:
            role.withdraw()
        rows = balances(wallets, before, market.vault)
        rows.append(Balance(FUND, donated, market.vault.pot(market.jackpot.address, FUND_POT), 0))
        change = {row.party: row.change for row in rows}
        report = ScenarioReport(
            accepted=accepted and settled[1] is TaskOutcome.ACCEPTED,
            cheating_solver_rejected=objection.dispute.winner == "challenger" and settled[0] is TaskOutcome.REJECTED,
            lying_verifier_slashed=dispute.winner == "challenger" and change["lying verifier"] < 0,
            false_challenger_slashed=false_dispute.winner == "asserter" and change["false challenger"] < 0,
            settled=tuple(outcome.name.lower() for outcome in settled),
            objection=objection,
            dispute=dispute,
            false_dispute=false_dispute,
            balances=tuple(rows),
            planted=self._planted,
            catches=catches,
            accuracy=accuracy,
            deployment=deployment,
            task_document=market.registry.terms(second).document.hex(),
            proofs=(self._proof_digest(cast, second),) * 2,
            objection_proof=self._proof_digest(cast, first),
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

    def _enter(self, cast: Cast, deployer: Wallet) -> int:
        """Deposit, donate to the fund, and enrol tickets. Returns the donation."""
        market, part, donated = cast.submitter.market, self._part, self._part // 2
        market.vault.deposit(deployer, donated)
        market.jackpot.donate(deployer, donated)
        for role in cast.roles:
            role.deposit(part)
        for role in (cast.verifier, cast.lying_verifier, cast.whistleblower):
            market.sortition.enrol(role.wallet, TICKETS)
        # Tickets count from the next second on, and a local node is quicker than that.
        self._connection.wait_until(self._connection.now())
        bond = ether(TICKETS * market.sortition.unit())
        self._tell.say(
            f"Every party brings {ether(part)} into the vault: all stakes come from there. The deployer gives "
            f"{ether(donated)} to the fund, which pays watch rewards. Two verifiers and the "
            f"whistleblower lock {bond} each for {TICKETS} tickets, by which seats and watchers are "
            "drawn. One verdict in four has to be wrong on purpose, so that somebody looks; only its verifier knows."
        )
        return donated

    # --- the moves of the protocol ------------------------------------------------------------------------------------

    def _submit(self, submitter: Submitter, captured: Capture, offer: Offer) -> bytes:
        task_id = submitter.submit(captured, offer, MODEL, OPTIMIZER)
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
            f"{len(claim.reruns)} seeded reruns in other reduction orders diverge by at most {spread[0]} (parameters) "
            f"and {spread[2]} (optimizer state) of the distance traveled; thresholds: {threshold[0]}, {threshold[2]}. "
            f"A fresh rerun stays inside with probability >= {profile.coverage}, before a margin of {claim.margin}."
        )
        deadline = verifier.market.profiles.standing(task_id).deadline
        hours = verifier.market.registry.terms(task_id).profile_window / 3600
        waiting = "the chain's clock is moved past it" if self._connection.is_test_chain else "everybody waits"
        self._tell.say(
            f"A party that measures something else has {hours:.3g} hours to convict the profile; nobody bids for the "
            f"task before: {waiting}."
        )
        verifier.connection.wait_until(deadline)
        verifier.market.profiles.conclude(verifier.wallet, task_id)

    def _seat(self, verifier: Verifier, task_id: bytes) -> None:
        ticket = verifier.claim_seat(task_id)
        if not verifier.take_seat(task_id):
            raise ProtocolError("a seat that only one party claimed went to another; please report this")
        seating = verifier.market.registry.task(task_id).seating
        self._tell.say(f"Ticket {ticket} has the smallest rank of all claims of seat {seating}: its holder sits.")

    def _train(self, solver: Solver, task_id: bytes, rival: Solver | None = None) -> float:
        solver.bid(task_id)
        if rival is not None:
            # Its bid is meant to lose, so the profile needn't be checked.
            rival.bid(task_id, RIVAL_DISCOUNT, recheck=False)
            rival.reveal(task_id, RIVAL_DISCOUNT)
        solver.reveal(task_id)
        solver.market.registry.award(solver.wallet, task_id)
        price = solver.market.registry.task(task_id).price
        paid = "the maximum, as nobody else bids" if rival is None else "the price of the second-best bid"
        self._tell.say(f"Bids are sealed, then revealed. The lowest wins and is paid {ether(price)}: {paid}.")
        how = "canonically" if solver.market.registry.terms(task_id).is_exact else "with stock torch"
        with self._tell.progress(f"training {how}") as advance:
            proof = solver.train(task_id, advance)
        accuracy = self._accuracy(solver, task_id, proof)
        progress = len(solver.market.proofs.events("ProgressPosted", taskId=task_id))
        posted = f"posted its checkpoint log {progress} times while training and " if progress else ""
        self._tell.say(
            f"The solver {posted}committed {len(proof.checkpoints)} state roots (log root "
            f"{proof.log_root.hex()[:12]}). The model classifies {accuracy:.1%} of the scans correctly."
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
        duty = "had to plant an error, and discloses the true claim" if planted else "didn't have to err"
        self._tell.say(f"The watch is over: the verifier discloses that it {duty}. The contract compares and {word}.")
        if accepted != all(v.outcome is Outcome.ACCEPTED for v in verdicts):
            raise ProtocolError("the contract and the verifier read the same distances differently; please report this")
        return accepted

    def _watch(self, watcher: Whistleblower, task_id: bytes) -> None:
        """A drawn watcher replays the segments, and seals its finding until the task is closed."""
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

    def _object(self, seer: Whistleblower, solver: Solver, task_id: bytes, passed: bool) -> ObjectionReport:
        """Screen the log of a task, replay what is odd, and dispute what is false."""
        with self._tell.progress("screening all checkpoints"):
            suspects = seer.suspects(task_id)
        with self._tell.progress("replaying the suspects"):
            found = seer.false_segment(task_id)
        if found is None:
            raise ProtocolError(f"the whistleblower finds nothing wrong in segments {suspects}; please report this")
        drawn = found.segment in seer.market.proofs.drawn_segments(task_id)
        luck = "the draw has hit it, too" if drawn else "no verifier had to look at it"
        self._tell.say(
            f"No segment looks like segment {found.segment}, after which the training stands still. A replay ends "
            f"somewhere else; {luck}. Anybody may dispute any segment: the solver has committed to both of its ends."
        )
        dispute = narrated_objection(self._tell, solver, seer, task_id, found)
        return ObjectionReport(found.segment, drawn, passed, dispute)

    def _collect(self, watcher: Whistleblower) -> int:
        """Claim the watch rewards of closed tasks."""
        paid = sum(watcher.collect(*place, finding.charge.index) for place, finding in self._found.items())
        if paid:
            (task_id, _), *_ = self._found
            shares = int(watcher.market.jackpot.read("shares"))
            share = watcher.market.registry.terms(task_id).jackpot // shares
            errors = "an error" if paid == 1 else f"{paid} errors"
            self._tell.say(f"The whistleblower had named {errors} before anybody else: {ether(share)} for each share.")
        return paid

    def _settle(self, submitter: Submitter, task_id: bytes) -> TaskOutcome:
        registry = submitter.market.registry
        submitter.connection.wait_until(registry.task(task_id).deadline)
        submitter.market.settlement.settle(submitter.wallet, task_id)
        outcome = registry.task(task_id).outcome
        self._tell.say(f"Task {task_id.hex()[:12]} is settled: {outcome.name.lower()}.")
        return outcome

    # --- narration -------------------------------------------------------------------------------------------------

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
        self._tell.table("Distances, relative to the distance traveled", columns, rows)

    def _tell_balances(self, report: ScenarioReport) -> None:
        def amounts(*wei: int) -> tuple[str, ...]:
            return tuple(f"{amount / ETHER:,.6f}" for amount in wei)

        rows = [(b.party, *amounts(b.before, b.after, b.locked, b.change, b.gas)) for b in report.balances]
        gas = sum(b.gas for b in report.balances)
        rows.append(("together", "", "", "", *amounts(report.total_change_wei, gas)))
        columns = ("party", "before", "after", "tickets", "change", "gas paid")
        self._tell.table("Balances in ETH; change: after + tickets + gas - before", columns, rows)
