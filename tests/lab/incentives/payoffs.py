"""The game of one task: the expected value of every action of every role (docs/spec/game.md).

Payments come from the integer code of the market and the jackpot (`payouts`, `jackpot`); probabilities and expectations
are floats. Nobody is assumed honest: watchers are awake only if watching pays.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from math import exp, inf

from lab.incentives.game_inputs import (
    CATCH_TRANSACTIONS,
    CLAIM_TRANSACTIONS,
    Costs,
    Fabrication,
    Stakes,
    Threat,
    over_drawn,
)
from pol.incentives import payouts
from pol.incentives.forced_errors import ONE
from pol.incentives.jackpot import JackpotRules
from pol.incentives.payouts import Deal


@dataclass(frozen=True)
class Choice:
    """A decision: the value of duty, and of everything else."""

    role: str
    state: str
    honest: float
    others: Mapping[str, float]

    @property
    def margin(self) -> float:
        """Value of duty above the best deviation. If it isn't above 0, duty isn't the best response."""
        return self.honest - max(self.others.values(), default=-inf)

    @property
    def temptation(self) -> str:
        """The best deviation."""
        return max(self.others, key=self.others.__getitem__)


@dataclass(frozen=True)
class Game:
    """One task under the rules of a deployment."""

    chance: JackpotRules | None
    """None: there are no planted errors."""
    stakes: Stakes
    costs: Costs
    threat: Threat

    # Payments by the rules.

    @cached_property
    def deal(self) -> Deal:
        """The stakes as the settlement table takes them.

        Raises:
            ProtocolError: amounts that the market does not admit.
        """
        stakes = self.stakes
        return Deal(
            maximum=stakes.price,
            price=stakes.price,
            verifier_fee=stakes.verifier_fee,
            solver_stake=stakes.solver_stake,
            verifier_stake=stakes.verifier_stake,
            bond=stakes.bond,
            tax=self.tax,
            share=self.share,
            profiled=stakes.profiled,
        )

    @cached_property
    def rate(self) -> float:
        """Probability of a planted error."""
        return self.chance.rate / ONE if self.chance else 0.0

    @cached_property
    def share(self) -> int:
        """One watch reward."""
        return self.chance.share(self.stakes.jackpot) if self.chance else 0

    @cached_property
    def tax(self) -> int:
        """Tax of the task."""
        return self.chance.tax(self.stakes.jackpot) if self.chance else 0

    @cached_property
    def reward(self) -> int:
        """Reward of a right challenger."""
        return payouts.challenger_right(self.deal).challenger - self.stakes.bond

    @cached_property
    def fall(self) -> int:
        """Loss of a verifier whose verdict falls to a friend, who gives the reward back."""
        return self.stakes.verifier_stake - self.reward

    @cached_property
    def verification(self) -> int:
        """Cost of replaying all drawn segments."""
        return self.stakes.draws * self.costs.segment

    # Probabilities of detection.

    @cached_property
    def awake(self) -> bool:
        """Whether watching pays; otherwise nobody replays a verdict."""
        return self.watcher().margin > 0

    def seen(self, found: float = 1.0) -> float:
        """Probability that an outside watcher finds a false verdict, if each finds it with probability ``found``.

        Tickets are drawn independently, so the chance that none finds it is at most exp(-average finders). An adversary
        that chooses among seeds needs one without finders.
        """
        if not (self.chance and self.awake):
            return 0.0
        alone = exp(-(1 - self.threat.coalition) * self.chance.watchers * found)
        return float((1 - alone) ** self.threat.seeds)

    def silenced(self, prize: float, found: float = 1.0) -> float:
        """The value of a false verdict to a briber that can buy the silence of the drawn watchers.

        A holder of k tickets that found the error is paid k watch rewards and a challenger's reward: for less it would
        speak. Where that exceeds the value of the verdict, the verifier falls to a friend.
        """
        chance = self.chance
        if chance is None or not self.awake:
            return prize
        average = (1 - self.threat.coalition) * chance.watchers * found

        def worth(drawn: int) -> float:
            return max(prize - drawn * self.share - self.reward, float(-self.fall)) if drawn else prize

        return over_drawn(average, self.threat.seeds, worth)

    def missed(self) -> Iterator[tuple[int, float]]:
        """Numbers of fabricated segments, from 1 on, each with the probability that none of them is drawn."""
        n, draws, missed = self.stakes.segments, self.stakes.draws, 1.0
        for cheated in range(1, n + 1):
            missed *= max(0, n - draws - cheated + 1) / (n - cheated + 1)
            yield cheated, 1 - (1 - missed) ** self.threat.seeds

    def saved(self, cheated: int) -> float:
        """The largest part of the training that ``cheated`` fabricated segments save."""
        each = max(self.threat.saved_by_one_lie, 1 / self.stakes.segments)
        return min(1.0, cheated * each)

    def fabrications(self) -> Iterator[Fabrication]:
        """Every way to fabricate segments: by a jump, which shows in the log, or with care, saving no more than them.

        Without a state to jump to the two are one.
        """
        each, unseen = 1 / self.stakes.segments, 1 - self.threat.objectors
        jumps = self.threat.saved_by_one_lie > each
        for cheated, missed in self.missed():
            yield Fabrication(f"{cheated}", cheated, self.saved(cheated), missed, unseen if jumps else 1.0)
            if jumps and unseen < 1:
                yield Fabrication(f"{cheated} with care", cheated, cheated * each, missed)

    @cached_property
    def recovered(self) -> int:
        """What a friend of a solver that is about to be rejected brings back of its stake: by a demand, or first to
        object."""
        stakes = self.stakes
        segment = payouts.segment_price(stakes.price, stakes.segments, stakes.verifier_fee, stakes.draws)
        bond = payouts.objection_bond(segment + self.costs.dispute, stakes.solver_stake, 0)
        objecting = payouts.objector_reward(stakes.solver_stake, bond, self.tax)
        return max(payouts.data_withheld(self.deal, stood=False).challenger, objecting)

    @cached_property
    def misses(self) -> Mapping[int, float]:
        """`missed` as a mapping."""
        return dict(self.missed())

    # Choices of each role.

    def solver(self) -> Choice:
        """Solver: train everything, fabricate some segments, vanish, or stay away."""
        deal, costs = self.deal, self.costs
        wrong = self.threat.false_reject
        withheld = payouts.data_withheld(deal, stood=False)
        paid, lost = payouts.accepted(deal).solver - deal.solver_stake, deal.solver_stake - self.recovered
        honest = (1 - wrong) * paid - wrong * lost - costs.training - costs.solver_capital
        # Verifiers that don't replay detect nothing.
        looking = 1.0 if self.seen() else 0.0
        others = {
            "stay away": 0.0,
            "vanish": -float(deal.solver_stake - payouts.solver_defaulted(deal).submitter),
            "withhold data": -float(deal.solver_stake - withheld.challenger - withheld.submitter),
        }
        for way in self.fabrications():
            passed = (1 - looking * (1 - way.missed)) * way.unseen
            gain = self.threat.gain if way.cheated >= self.threat.least else 0
            value = passed * paid - (1 - passed) * lost + gain - (1 - way.saved) * costs.training
            others[f"fabricate {way.name}"] = value - costs.solver_capital
        return Choice("solver", "won a task", honest, others)

    def bribe(self) -> float:
        """The highest bribe for a false verdict: of a rejected solver, or a submitter that wants a refund."""
        deal = self.deal
        solver = deal.price + deal.solver_stake + self.threat.gain
        submitter = payouts.rejected(deal).submitter - payouts.accepted(deal).submitter
        return float(max(solver, submitter))

    def verifier(self) -> Iterator[Choice]:
        """Verifier: replay, guess some claims or all, lie for a bribe, withhold, leak, sell; forced and not.

        If watchers are known before the verdict there are two more states, in which no outsider watches.
        """
        for state, planted in (("not forced", 0), ("forced", 1)):
            if self.rate == 0 and planted:
                return
            yield self._seat(state, planted, None)
            if self.threat.watchers_known and self.chance:
                yield self._seat(f"{state}, nobody watches", planted, 0.0)

    def _seat(self, state: str, planted: int, watched: float | None) -> Choice:
        stakes, costs = self.stakes, self.costs
        segment, all_ = costs.segment, self.verification
        sent = CLAIM_TRANSACTIONS * costs.transaction + costs.verifier_capital
        fee, stake, fall = float(stakes.verifier_fee), float(stakes.verifier_stake), float(self.fall)
        honest = fee - all_ - sent

        def found(lies: int) -> float:
            # A watcher stops at the first wrong claim, in an order of its own: the planted one may shield a lie.
            return self.seen(lies / (lies + planted)) if watched is None else watched

        def lie(lies: int, prize: float, work: float) -> float:
            falls = found(lies)
            return (1 - falls) * (fee + prize) - falls * fall - work - sent

        others = {
            "stay away": 0.0,
            "vanish": -payouts.seat_defaulted(self.deal).fund,
            "withhold the secret": -stake - all_ - sent,
            "withhold the secret, no work": -stake - sent,
            "leak to a friend": -fall - sent,
            "sell the secret": self._sold(honest),
            "lie for a bribe": lie(1, self.bribe(), all_),
            "lie for a bribe, no work": lie(stakes.draws, self.bribe(), 0.0),
        }
        if watched is None:
            for name, lies, work in (("", 1, all_), (", no work", stakes.draws, 0.0)):
                bought = self.silenced(fee + self.bribe(), lies / (lies + planted))
                others[f"lie and buy the drawn watchers{name}"] = bought - work - sent
        if planted:
            others["the truth"] = -stake - all_ - sent
        else:
            others["an error unasked"] = lie(1, 0.0, all_)
        for guessed in range(1, stakes.draws + 1):
            work = float((stakes.draws - guessed) * segment)
            if self.threat.public_roots:
                # The solver is honest, so its roots are true.
                others[f"guess {guessed}"] = fee - work - sent
            else:
                others[f"guess {guessed}"] = lie(guessed, 0.0, work)
        return Choice("verifier", state, honest, others)

    def _sold(self, honest: float) -> float:
        """Value of selling the secret to one ticket holder, who shows it if that pays more."""
        if self.reward >= self.share:
            return float(self.share) - self.stakes.verifier_stake
        return honest + self.share

    def watcher(self) -> Choice:
        """Watcher with one drawn ticket: replay until a claim is wrong, or less; guess, copy, or wait for others."""
        draws, costs = self.stakes.draws, self.costs
        prize = self.share - CATCH_TRANSACTIONS * costs.transaction

        def watch(looked: int) -> float:
            """Replaying up to ``looked`` claims in random order, stopping at the first wrong one."""
            replays = (looked * (looked + 1) / 2 + (draws - looked) * looked) / draws
            return self.rate * looked / draws * prize - costs.segment * (self.rate * replays + (1 - self.rate) * looked)

        others = {"sleep": 0.0, "copy another's commitment": -float(costs.transaction)}
        others |= {f"look at {looked}": watch(looked) for looked in range(1, draws)}
        # If roots are public, the odd claim is visible, and so is the final root.
        others["guess the root"] = self.rate * prize if self.threat.public_roots else -float(costs.transaction)
        if self.threat.can_wait and self.chance:
            another = 1 - exp(-(1 - self.threat.coalition) * self.chance.watchers)
            others["wait for another's commitment"] = self.rate * another * (prize - costs.segment * (draws + 1) / 2)
        return Choice("watcher", "drawn", watch(draws), others)

    def watching(self, tickets: int) -> float:
        """Earnings of each of ``tickets`` drawn tickets in one hand: all are paid, for one replay."""
        draws, costs, prize = self.stakes.draws, self.costs, self.share - CATCH_TRANSACTIONS * self.costs.transaction
        replays = costs.segment * (self.rate * (draws + 1) / 2 + (1 - self.rate) * draws)
        return self.rate * prize - replays / tickets

    def challenger(self) -> Iterator[Choice]:
        """Challenger that has found a lie, while the liar lets a friend win; and one that has found nothing."""
        costs = self.costs
        caught = self.share if self.threat.catches_of_lies else 0
        yield Choice(
            "challenger",
            "has named the truth of a false claim",
            float(caught - CATCH_TRANSACTIONS * costs.transaction),
            {"stay silent": 0.0},
        )
        lost = float(self.stakes.bond + costs.transaction)
        yield Choice("challenger", "all claims are true", 0.0, {"challenge": -lost, "challenge and play on": -lost})

    def defender(self) -> Choice:
        """Challenged verifier that is right: defend, or let the clock run out."""
        won = payouts.challenger_wrong(self.deal).holder
        return Choice(
            "verifier",
            "challenged, and right",
            float(won - self.costs.dispute - self.costs.segment),
            {"give up": -float(self.fall)},
        )

    def submitter(self) -> Choice:
        """Submitter that farms the jackpot with its own tasks: all tickets of a coalition watch, on its best seed."""
        if self.chance is None:
            return Choice("submitter", "needs no model", 0.0, {})
        # The best of several seeds isn't above the sum of their means.
        share = self.threat.coalition * self.chance.watchers * self.share * self.threat.seeds
        forced = share * self.rate
        others = {"farm the jackpot": forced - self.tax}
        # Burning the seat buys another draw.
        burning = share - self.fall * (1 / self.rate - 1)
        others["farm, and burn the seat until it is forced"] = burning - self.tax
        withholding = share - payouts.data_withheld(self.deal, stood=False).fund * (1 / self.rate - 1)
        others["farm, and withhold data until it is forced"] = withholding - self.tax
        if self.threat.catches_of_lies:
            others["farm by lying"] = share - self.fall - self.tax
        return Choice("submitter", "needs no model", 0.0, others)

    def coalition(self) -> Iterator[Choice]:
        """Solver and tickets, or submitter and tickets, in one hand: the value of the seat and of blind watchers."""
        deal, threat = self.deal, self.threat
        seat = 1 - (1 - threat.coalition) ** threat.seeds
        if not seat:
            return
        seen, fall = self.seen(), float(self.fall)
        price = float(deal.price)
        lost = float(deal.solver_stake - self.recovered)
        honest = price - self.costs.training
        # After a hit it lies in the seat, until a lie is found and the seat is drawn again.
        hit = ((1 - seat) * -lost + seat * (1 - seen) * price - seat * seen * fall) / (1 - seat * seen)
        # Or it serves friends only: nobody looks at the log, and it is lost if two outsiders sit.
        blind = (1 - seat) ** payouts.WORDS
        alone = (1 - blind) * price - blind * lost
        others = {}
        for way in self.fabrications():
            gain = threat.gain if way.cheated >= threat.least else 0
            for how, after, objected in (
                ("lie in the seat", hit, -lost),
                ("be rejected", -lost, -lost),
                ("serve friends only", alone, alone),
            ):
                # Whatever the seat does, an outsider that can read the log may object.
                unhit = way.missed * price + (1 - way.missed) * after
                value = way.unseen * unhit + (1 - way.unseen) * objected
                others[f"fabricate {way.name}, {how}"] = value + gain - (1 - way.saved) * self.costs.training
        yield Choice("coalition", "solver and tickets", honest, others)
        back = payouts.rejected(deal).submitter - payouts.accepted(deal).submitter
        kept = payouts.not_served(deal)
        share, saved = kept.challenger - deal.word, deal.bidding_escrow - payouts.accepted(deal).submitter
        false_words = seat * (payouts.WORDS * share + saved) - (1 - seat) * deal.word
        lies = {
            "reject an honest proof": seat * ((1 - seen) * back - seen * fall),
            "have a model for two false words": seat * false_words,
        }
        yield Choice("coalition", "submitter and tickets", 0.0, lies)

    def choices(self) -> Iterator[Choice]:
        """Every decision of every role."""
        yield self.solver()
        yield from self.verifier()
        yield self.defender()
        yield self.watcher()
        yield from self.challenger()
        yield self.submitter()
        yield from self.coalition()
