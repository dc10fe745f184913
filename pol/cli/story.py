"""The demo: one story over three tasks, told while it happens. Nothing in it is staged; a seed moves everything.

The roles are handed a connection, a key and the store's address, never an object of another role.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random

import numpy as np
import torch

from pol.arithmetic.primitives import Op
from pol.chain.connection import Connection
from pol.chain.deployment import Deployment, deploy
from pol.chain.game import Side
from pol.chain.market import TaskOutcome
from pol.chain.wallet import Wallet
from pol.cli.cast import ETHER, PARTIES, Balance, address_of, balances, fund, key_of
from pol.cli.narrator import Narrator
from pol.cli.report import DisputeReport, OneStep, Report, describe_move, ether, shown
from pol.dispute.arbitration import execute_instruction
from pol.dispute.moves import ProveStep
from pol.dispute.record import Record
from pol.graph.capture import Capture
from pol.graph.names import Names
from pol.roles.duel import Duel, MoveMade
from pol.roles.hostile import BaselessWhistleblower, LyingVerifier, SkippingSolver
from pol.roles.role import Role
from pol.roles.solver import Solver
from pol.roles.submitter import Offer, Submitter
from pol.roles.verifier import Verifier
from pol.roles.whistleblower import Whistleblower
from pol.training import digits
from pol.training.learning_proof import LearningProof, load_checkpoint
from pol.verification.profile import Profile
from pol.verification.verdict import Outcome, Verdict, limit, relative_distance

MODEL = "MLP 64-64-10 on the UCI handwritten digits, cross-entropy"
OPTIMIZER = "torch.optim.SGD(lr=0.05, momentum=0.9)"
LIVE_WINDOW, LIVE_CLOCK = 60, 600
"""Seconds of a challenge window and of a clock on a chain whose time can't be moved."""


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
        self._funder_key = funder_key
        self._connection = connect()
        is_live = not self._connection.is_test_chain
        window, clock = (LIVE_WINDOW, LIVE_CLOCK) if is_live else (86_400, 21_600)
        self._offer = Offer(digits.STEPS, digits.INTERVAL, challenge_window=window, clock=clock)

    def run(self) -> Report:
        """The whole story."""
        captured = digits.captured(self._seed)
        deployer, deployment = self._deploy()
        roles = self._roles(deployment)
        submitter, whistleblower = roles["submitter"], roles["whistleblower"]
        assert isinstance(submitter, Submitter)
        assert isinstance(whistleblower, Whistleblower)
        before = {party: self._connection.balance(address_of(self._seed, party)) for party in PARTIES}
        before["deployer"] += deployer.gas_paid

        self._tell.chapter("A submitter puts a task on chain")
        first = self._submit(submitter, captured)
        self._tell.chapter("A verifier profiles how far honest executions part")
        self._profile(roles["honest verifier"], first)
        self._tell.chapter("A solver trains with stock torch and commits a learning proof")
        accuracy = self._train(roles["honest solver"], first)
        self._tell.chapter("A beacon draws segments; the verifier replays them; the chain compares")
        accepted = self._verify(roles["honest verifier"], first)

        self._tell.chapter("A second solver skips a tenth of its steps")
        second = self._submit(submitter, captured)
        self._profile(roles["honest verifier"], second)
        self._train(roles["cheating solver"], second)
        rejected = not self._verify(roles["honest verifier"], second)

        self._tell.chapter("A lying verifier flips one bit of one scalar in a backward pass")
        third = self._submit(submitter, captured)
        self._profile(roles["lying verifier"], third)
        self._train(roles["honest solver"], third)
        self._verify(roles["lying verifier"], third)
        dispute = self._dispute(roles["lying verifier"], whistleblower, third)
        self._verify_again(roles["honest verifier"], third)

        self._tell.chapter("A whistleblower challenges an honest verdict")
        false_dispute = self._dispute(roles["honest verifier"], roles["false challenger"], first)

        self._tell.chapter("Settlement")
        settled = [self._settle(submitter, task_id) for task_id in (first, second, third)]
        for role in roles.values():
            role.withdraw()
        if submitter.market.credit(deployer.address):
            submitter.market.withdraw(deployer)
        rows = balances({"deployer": deployer, **roles}, before)
        report = Report(
            accepted=accepted and settled[0] is TaskOutcome.ACCEPTED,
            cheating_solver_rejected=rejected and settled[1] is TaskOutcome.REJECTED,
            lying_verifier_slashed=dispute.winner == "challenger" and self._change(rows, "lying verifier") < 0,
            false_challenger_slashed=false_dispute.winner == "asserter" and self._change(rows, "false challenger") < 0,
            settled=tuple(outcome.name.lower() for outcome in settled),
            dispute=dispute,
            false_dispute=false_dispute,
            balances=tuple(rows),
            left_in_market=self._connection.balance(deployment.market),
            accuracy=accuracy,
            deployment=deployment,
            task_document=submitter.market.terms(third).document.hex(),
        )
        self._tell_balances(report)
        return report

    @staticmethod
    def _change(rows: list[Balance], party: str) -> int:
        return next(row.change for row in rows if row.party == party)

    # --- preparations -------------------------------------------------------------------------------------------------

    def _deploy(self) -> tuple[Wallet, Deployment]:
        self._tell.say(f"Chain: {self._connection.name}. Contracts are deployed; every party gets 100 test ether.")
        fund(self._connection, self._seed, 100 * ETHER, self._funder_key)
        deployer = Wallet.create(self._connect(), key_of(self._seed, "deployer"))
        return deployer, deploy(deployer, deployer.address)

    def _roles(self, deployment: Deployment) -> dict[str, Role]:
        def arguments(party: str) -> tuple[Connection, Deployment, bytes, str]:
            return self._connect(), deployment, key_of(self._seed, party), self._store_url

        def random(party: str) -> Random:
            return Random(f"{self._seed} {party}")

        return {
            "submitter": Submitter(*arguments("submitter")),
            "honest solver": Solver(*arguments("honest solver")),
            "cheating solver": SkippingSolver(*arguments("cheating solver"), random("cheating solver")),
            "honest verifier": Verifier(*arguments("honest verifier")),
            "lying verifier": LyingVerifier(*arguments("lying verifier"), random("lying verifier")),
            "whistleblower": Whistleblower(*arguments("whistleblower")),
            "false challenger": BaselessWhistleblower(*arguments("false challenger"), random("false challenger")),
        }

    # --- the moves of the protocol ------------------------------------------------------------------------------------

    def _submit(self, submitter: Submitter, captured: Capture) -> bytes:
        task_id = submitter.submit(captured, self._offer, MODEL, OPTIMIZER)
        terms, state = submitter.market.terms(task_id), submitter.market.task(task_id)
        program = captured.program
        self._tell.say(
            f"Task {task_id.hex()[:12]}: {MODEL}; {OPTIMIZER}. Captured from ordinary PyTorch code into "
            f"{len(program.nodes)} nodes; program hash {terms.program.hex()[:12]}."
        )
        self._tell.say(
            f"{terms.steps} steps are {terms.work_units:,} work units: {ether(state.fee)} are in escrow, "
            f"the solver has to stake {ether(terms.solver_stake)}."
        )
        return task_id

    def _profile(self, role: Role, task_id: bytes) -> Profile:
        assert isinstance(role, Verifier)
        role.join(task_id)
        with self._tell.progress("reruns with other reduction orders"):
            profile = role.profile(task_id)
        spread, threshold = ([f"{limit(x):.1e}" for x in row] for row in (profile.spreads, profile.thresholds))
        self._tell.say(
            f"{profile.samples} seeded reruns in other reduction orders part by at most {spread[0]} (parameters) and "
            f"{spread[2]} (optimizer state) of the distance travelled; thresholds {threshold[0]} and {threshold[2]}. A "
            f"fresh rerun stays inside with probability >= {profile.coverage}, before a margin of {profile.margin}."
        )
        return profile

    def _train(self, role: Role, task_id: bytes) -> float:
        assert isinstance(role, Solver)
        price = role.accept(task_id)
        with self._tell.progress("training with stock torch") as advance:
            proof = role.train(task_id, advance)
        accuracy = self._accuracy(role, task_id, proof)
        progress = len(role.market.events("ProgressPosted", taskId=task_id))
        self._tell.say(
            f"The solver trained for {ether(price)}, posted its checkpoint log {progress} times while training and "
            f"committed {len(proof.checkpoints)} state roots (log root {proof.log_root.hex()[:12]}). The model "
            f"classifies {accuracy:.1%} of the scans correctly."
        )
        return accuracy

    def _accuracy(self, role: Role, task_id: bytes, proof: LearningProof) -> float:
        task = role.task(task_id)
        words = load_checkpoint(role.store, task, proof.checkpoints[-1])
        model = digits.build_model(self._seed)
        named = {n: torch.from_numpy(w.view(np.float32).copy()) for n, w in zip(task.names.slots, words, strict=True)}
        model.load_state_dict({name: named[name] for name in model.state_dict()})
        return digits.accuracy(model)

    def _verify(self, role: Role, task_id: bytes) -> bool:
        assert isinstance(role, Verifier)
        with self._tell.progress("replaying the drawn segments"):
            verdicts = role.verify(task_id)
        state = role.market.task(task_id)
        self._tell_verdicts(verdicts, state.thresholds)
        self._tell.say(
            f"The contract compares and {'[green]accepts[/green]' if state.accepted else '[red]rejects[/red]'}."
        )
        assert state.accepted == all(v.outcome is Outcome.ACCEPTED for v in verdicts)
        return state.accepted

    def _verify_again(self, role: Role, task_id: bytes) -> None:
        assert isinstance(role, Verifier)
        role.join(task_id)
        self._tell.say("Another verifier takes the empty seat and posts the corrected verdict.")
        self._verify(role, task_id)

    def _dispute(self, defender: Role, attacker: Role, task_id: bytes) -> DisputeReport:
        assert isinstance(defender, Verifier)
        assert isinstance(attacker, Whistleblower)
        finding = attacker.check(task_id)[0]
        dispute = attacker.challenge(task_id, finding)
        bond = ether(attacker.market.terms(task_id).bond)
        self._tell.say(
            f"A challenger puts up {bond} against the replay of segment {finding.claim.segment}; the game walks down:"
        )
        sides = (defender.defend(task_id, dispute), attacker.attack(task_id, finding, dispute))
        made = self._play(sides, dispute)
        names = attacker.task(task_id).names
        one_step = self._one_step(made[-1], sides[0], names)
        start = sides[0].game.params(dispute)
        winner = sides[0].game.winner(dispute).name.lower()
        report = DisputeReport(
            task_id=task_id,
            dispute=dispute,
            winner=winner,
            gas=tuple((m.position.level.name, int(m.receipt["gasUsed"])) for m in made),
            record=Record(start[0].claim, start[0].first_position(start[1]), tuple(m.move for m in made)),
            one_step=one_step,
        )
        if one_step is not None:
            self._tell_one_step(one_step)
        total = sum(gas for _, gas in report.gas)
        loser = "the verifier's stake is slashed" if winner == "challenger" else "the challenger loses its bond"
        self._tell.say(f"The {winner} wins after {len(made)} moves and {total:,} gas: {loser}.")
        return report

    def _play(self, sides: tuple[Duel, Duel], dispute: int) -> list[MoveMade]:
        made: list[MoveMade] = []
        while sides[0].game.winner(dispute) is Side.NONE:
            move = sides[0].advance() or sides[1].advance()
            if move is not None:
                made.append(move)
                self._tell.say(describe_move(move.position, move.move, int(move.receipt["gasUsed"])))
        return made

    def _one_step(self, last: MoveMade, defence: Duel, names: Names) -> OneStep | None:
        if not isinstance(last.move, ProveStep):
            return None
        position = last.position
        claim = defence.game.params(defence.dispute)[0].claim
        instance = execute_instruction(position, last.move, claim)
        proved = defence.game.events("StepProved", id=defence.dispute)[0]
        assert (proved["claimed"], proved["computed"]) == (instance.claimed, instance.computed)
        node = names.nodes[position.node]
        return OneStep(
            step=position.step,
            node=node.name,
            source=node.source,
            element=position.element,
            k=position.term,
            instruction=position.instruction,
            op=Op(proved["op"]).name,
            operands=instance.operands,
            claimed=int(proved["claimed"]),
            computed=int(proved["computed"]),
            gas=int(last.receipt["gasUsed"]),
        )

    def _settle(self, submitter: Submitter, task_id: bytes) -> TaskOutcome:
        submitter.connection.wait_until(submitter.market.task(task_id).deadline)
        submitter.market.settle(submitter.wallet, task_id)
        outcome = submitter.market.task(task_id).outcome
        self._tell.say(f"Task {task_id.hex()[:12]} is settled: {outcome.name.lower()}.")
        return outcome

    # --- what is told -------------------------------------------------------------------------------------------------

    def _tell_verdicts(self, verdicts: list[Verdict], thresholds: tuple[int, int, int]) -> None:
        rows = []
        for verdict in verdicts:
            claim = verdict.claim
            assert claim is not None
            for name, c in (("parameters", 0), ("optimizer state", 2)):
                relative = relative_distance(claim.distances[c], claim.references[c])
                row = (f"segment {claim.segment}, {name}", f"{relative:.2e}", f"{limit(thresholds[c]):.2e}")
                rows.append((*row, verdict.outcome.name.lower()))
        self._tell.table(
            "Distances, relative to the distance travelled", ("", "distance", "threshold", "verdict"), rows
        )

    def _tell_one_step(self, one: OneStep) -> None:
        words = ", ".join(shown(word, one.op) for word in one.operands)
        self._tell.say(
            f"step {one.step}, node [bold]{one.node}[/bold], from: [italic]{one.source}[/italic]".replace("\n", " ")
        )
        self._tell.say(
            f"element {one.element}, k = {one.k}, instruction {one.instruction}: [bold]{one.op}[/bold]({words})"
        )
        self._tell.say(f"the verifier claimed {shown(one.claimed, one.op)}")
        self._tell.say(f"the EVM computes     {shown(one.computed, one.op)}   ({one.gas:,} gas)")

    def _tell_balances(self, report: Report) -> None:
        def amounts(*wei: int) -> tuple[str, ...]:
            return tuple(f"{amount / ETHER:,.6f}" for amount in wei)

        rows = [(b.party, *amounts(b.before, b.after, b.change, b.gas)) for b in report.balances]
        rows.append(("together", "", "", *amounts(report.total_change_wei, sum(b.gas for b in report.balances))))
        columns = ("party", "before", "after", "change without gas", "gas paid")
        self._tell.table("Balances in ETH", columns, rows)
