"""An audit of payments: every settlement recomputed from events by `pol.incentives.payouts`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from eth_typing import ChecksumAddress

from pol.chain.deployment_rules import FUND
from pol.chain.desks.market import Market, Matter
from pol.chain.desks.task_registry import TaskOutcome
from pol.claims.acceptance_rule import EXACT
from pol.claims.segment_claim import Three
from pol.errors import ProtocolError
from pol.incentives import payouts
from pol.incentives.payouts import Deal, Payout
from pol.verification.verdict.second_look import decide_with_second_look
from pol.verification.verdict.verdict import Outcome, Verdict, decide


@dataclass(frozen=True)
class AuditFinding:
    """A recomputed value beside the one on chain."""

    task_id: bytes
    what: str
    expected: Any
    found: Any

    @property
    def holds(self) -> bool:
        """Whether the two are equal."""
        return bool(self.expected == self.found)


class Auditor:
    """Recomputes the decisions and payments of a market, with the share of ``treasury``; needs no key and no store."""

    def __init__(self, market: Market, treasury: ChecksumAddress) -> None:
        self._market, self._treasury = market, treasury
        self._held: dict[tuple[int, bytes, str], list[AuditFinding]] = {}
        """Findings that held, by block, transaction and event: not recomputed while the event stands there."""

    def findings(self) -> Iterator[AuditFinding]:
        """Findings about all settled verdicts, and all payments for verdicts, profiles and disputes."""
        market = self._market
        for event in market.registry.events("TaskClosed"):
            yield from self._once("TaskClosed", event, self._closed)
        for event in market.profiles.events("ProfileConcluded"):
            yield from self._once("ProfileConcluded", event, self._profiled)
        for matter, court in market.courts.items():
            names = court.desk.EVENTS
            for name, event in court.desk.log.read((names.settled, names.moot)):
                yield from self._once(name, event, partial(self._disputed, matter, name))
        for event in market.settlement.events("NotServed"):
            yield from self._once("NotServed", event, self._not_served)
        for event in market.counterclaims.events("CounterclaimConcluded"):
            yield from self._once("CounterclaimConcluded", event, self._counterclaimed)

    def _once(
        self, name: str, event: dict[str, Any], examine: Callable[[dict[str, Any]], Iterable[AuditFinding]]
    ) -> list[AuditFinding]:
        key = (
            int(event["block"]),
            bytes(event["transaction"]),
            f"{name} {event.get('number', event.get('dispute', ''))}",
        )
        if key in self._held:
            return self._held[key]
        found = list(examine(event))
        if all(finding.holds for finding in found):
            self._held[key] = found
        return found

    def _profiled(self, event: dict[str, Any]) -> Iterator[AuditFinding]:
        task_id = bytes(event["taskId"])
        paid = {event["verifier"]: payouts.profile_concluded(self._deal(task_id)).holder}
        yield self._paid(task_id, "the profiler's pay", paid, 0, event["transaction"])

    def _closed(self, event: dict[str, Any]) -> Iterator[AuditFinding]:
        task_id, outcome, transaction = bytes(event["taskId"]), TaskOutcome(event["outcome"]), event["transaction"]
        if outcome in (TaskOutcome.CANCELLED, TaskOutcome.ABANDONED):
            return
        task = self._market.registry.task(task_id)
        posted = self._market.verdicts.last_event(f"task {task_id.hex()}", "VerdictPosted", taskId=task_id)
        rejecting, differing = self.recount(task_id, int(posted["seating"]))
        award = self._market.registry.last_event(f"task {task_id.hex()}", "Awarded", taskId=task_id)
        objected = self._objected(task_id, int(award["block"]), int(event["block"]))
        expected = TaskOutcome.REJECTED if rejecting or objected is not None else TaskOutcome.ACCEPTED
        yield AuditFinding(task_id, "outcome", expected.name, outcome.name)
        looked = sum(int(paid["amount"]) for paid in self._settled("LooksPaid", event))
        deal = replace(self._deal(task_id, price=int(award["price"])), looked=looked, objected=objected or 0)
        words = self._settled("WordEnded", event)
        if outcome is TaskOutcome.ACCEPTED:
            row = payouts.accepted(deal, contradicted=any(word["verifier"] != posted["verifier"] for word in words))
        elif differing or objected is not None:
            row = payouts.rejected(deal)
        else:
            row = payouts.rejected_though_repeated(deal)
        parties, fund = _parties(row, task.submitter, award["solver"], posted["verifier"], treasury=self._treasury), 0
        for word in words:
            if objected is not None or word["verifier"] == posted["verifier"]:
                parties[word["verifier"]] = parties.get(word["verifier"], 0) + deal.word
            else:
                fund += payouts.word_contradicted(deal).fund
        yield self._paid(task_id, "settlement", parties, row.fund + fund, transaction)

    def _not_served(self, event: dict[str, Any]) -> Iterator[AuditFinding]:
        task_id, block, transaction = bytes(event["taskId"]), int(event["block"]), event["transaction"]
        award = self._market.registry.last_event(f"task {task_id.hex()}", "Awarded", block, taskId=task_id)
        objected = self._objected(task_id, int(award["block"]), block)
        deal = replace(self._deal(task_id, price=int(award["price"])), objected=objected or 0)
        what, words = "the fine of a solver that doesn't serve", self._settled("WordEnded", event)
        for withheld in self._settled("Withheld", event):
            # Who sat and who demanded are paid in the same transaction.
            looked = sum(int(paid["amount"]) for paid in self._settled("LooksPaid", event))
            row = (
                payouts.not_served(deal, withheld=True)
                if len(words) == 2
                else payouts.data_withheld(replace(deal, looked=looked), stood=withheld["fee"] > 0, said=True)
            )
            yield AuditFinding(
                task_id, what, (row.challenger - deal.word, row.submitter), (event["share"], event["half"])
            )
            return
        first, second = (word["verifier"] for word in words)
        # The second has left its seat in the same transaction, unless an objection was open then.
        stake = deal.verifier_stake if self._settled("Unserved", event) else 0
        row = payouts.not_served(deal)
        row = replace(row, holder=row.holder - deal.verifier_stake + stake + deal.word)
        submitter = self._market.registry.task(task_id).submitter
        parties = _parties(row, submitter, holder=second, challenger=first)
        yield self._paid(task_id, what, parties, row.fund, transaction)

    def _settled(self, name: str, event: dict[str, Any]) -> list[dict[str, Any]]:
        """What the settlement says of a task in the transaction of ``event``."""
        said = self._market.settlement.events(name, taskId=bytes(event["taskId"]))
        return [other for other in said if other["transaction"] == event["transaction"]]

    def recount(self, task_id: bytes, seating: int) -> tuple[int, int]:
        """Number of rejecting claims of a verdict, and of those whose replay ends elsewhere than the solver."""
        claims = [v.claim for v in self.verdicts(task_id, seating) if v.outcome is Outcome.REJECTED]
        return len(claims), sum(claim is not None and claim.replay != claim.end for claim in claims)

    def verdicts(self, task_id: bytes, seating: int) -> list[Verdict]:
        """The verdict on each present claim, with its second look."""
        terms, thresholds = self._market.registry.terms(task_id), self.thresholds(task_id)
        looks = self._market.verdicts.looks(task_id, seating)
        found = []
        for index, claim in enumerate(self._market.verdicts.claims(task_id, seating)):
            verdict = decide(claim, thresholds)
            if verdict.outcome is Outcome.REJECTED and index in looks:
                # A corrected claim may have left behind the second look of the wrong one.
                with suppress(ProtocolError):
                    verdict = decide_with_second_look(claim, thresholds, looks[index], terms.looks, terms.look_margin)
            found.append(verdict)
        return found

    def thresholds(self, task_id: bytes) -> Three:
        """The thresholds of a task: zeros in exact mode, and before there is a profile."""
        if self._market.registry.terms(task_id).is_exact:
            return EXACT
        return self._market.profiles.standing(task_id).thresholds

    def _disputed(self, matter: Matter, name: str, event: dict[str, Any]) -> Iterator[AuditFinding]:
        court = self._market.courts[matter]
        names = court.desk.EVENTS
        task_id, number = bytes(event["taskId"]), event[names.number]
        began = court.desk.last_event(f"dispute {number}", names.challenged, **{names.number: number})
        deal = self._deal(task_id, bond=int(began["bond"]))
        if name == names.moot:
            row = payouts.challenge_moot(deal)
        elif matter in (Matter.VERDICT, Matter.PROFILE):
            row = payouts.challenger_wrong(deal) if event["asserterWon"] else payouts.challenger_right(deal)
        elif event["asserterWon"]:
            row = payouts.objector_wrong(deal)
        elif matter is Matter.OBJECTION:
            row = payouts.objector_right(replace(deal, objected=self._reward(task_id, deal.bond)))
        else:
            lost = self._market.counterclaims.counterclaimed(event[names.subject]).bond
            row = payouts.counterclaim_wrong(replace(deal, bond=lost), deal.bond)
        players = court.game.params(number)
        parties = _parties(row, holder=players.asserter, challenger=players.challenger)
        if row.solver:
            task, until = f"task {task_id.hex()}", int(event["block"])
            solver = self._market.registry.last_event(task, "Awarded", until, taskId=task_id)["solver"]
            parties[solver] = parties.get(solver, 0) + row.solver
        what = f"dispute {number}" if matter in (Matter.VERDICT, Matter.PROFILE) else f"{matter} {number}"
        yield self._paid(task_id, what, parties, row.fund, event["transaction"])

    def _counterclaimed(self, event: dict[str, Any]) -> Iterator[AuditFinding]:
        task_id, number = bytes(event["taskId"]), int(event["number"])
        counterclaims = self._market.counterclaims
        lost = counterclaims.events("ContestSettled", number=number)
        if any(settled["transaction"] == event["transaction"] for settled in lost):
            return  # It fell in a dispute, which pays out both bonds.
        said = counterclaims.counterclaimed(number)
        paid = said.bond + (self._reward(task_id, said.bond) if event["stood"] else 0)
        yield self._paid(task_id, f"counterclaim {number}", {said.objector: paid}, 0, event["transaction"])

    def _reward(self, task_id: bytes, bond: int) -> int:
        """Gain of an objector that has shown a false segment with this bond."""
        terms = self._market.registry.terms(task_id)
        stake = payouts.slashable(terms.solver_stake, terms.verifier_fee, terms.looks, terms.draws)
        return payouts.objector_reward(stake, bond, self._market.jackpot.tax(terms.jackpot))

    def _objected(self, task_id: bytes, since: int, until: int) -> int | None:
        """What an objector has got of the stake of the solver chosen in block ``since``; None if its proof stands."""
        paid = self._market.settlement.events("ObjectorPaid", taskId=task_id)
        return next((int(event["amount"]) for event in paid if since <= int(event["block"]) <= until), None)

    def _deal(self, task_id: bytes, price: int = 0, bond: int = 0) -> Deal:
        terms = self._market.registry.terms(task_id)
        return Deal(
            maximum=terms.maximum_price,
            price=price,
            verifier_fee=terms.verifier_fee,
            solver_stake=terms.solver_stake,
            verifier_stake=terms.verifier_stake,
            bond=bond,
            tax=self._market.jackpot.tax(terms.jackpot),
            profiled=not terms.is_exact,
        )

    def _paid(
        self, task_id: bytes, what: str, parties: dict[ChecksumAddress, int], fund: int, transaction: bytes
    ) -> AuditFinding:
        """The payments of a transaction about a task: to parties, and to the fund."""
        found: Counter[str] = Counter()
        for name, event in self._market.vault.log.read(("Paid", "Unlocked", "Moved"), transaction=transaction):
            if bytes(event["key"]) != task_id:
                continue
            if name != "Moved":
                found[event["account"]] += int(event["amount"])
            elif event["toDesk"] == self._market.jackpot.address and bytes(event["toKey"]) == FUND:
                found["fund"] += int(event["amount"])
        expected = Counter({party: amount for party, amount in parties.items() if amount}) + Counter({"fund": fund})
        return AuditFinding(task_id, what, dict(expected), dict(found))


def _parties(row: Payout, *named: ChecksumAddress, **others: ChecksumAddress) -> dict[ChecksumAddress, int]:
    """Amounts by account, which may have several roles; ``named`` are submitter, solver and holder."""
    accounts = dict(zip(("submitter", "solver", "holder"), named, strict=False)) | others
    amounts: Counter[ChecksumAddress] = Counter()
    for part, account in accounts.items():
        amounts[account] += getattr(row, part)
    return dict(amounts)
