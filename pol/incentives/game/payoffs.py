"""The game of one task: what every action of every role is worth on average (docs/spec/game.md).

Amounts that are paid come from the integer code of the market and the jackpot (`payouts`, `jackpot`); probabilities and
expectations are floats. Nothing here assumes that somebody is honest: whether watchers are awake follows from what
watching pays.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from math import exp, floor, inf

from pol.errors import ProtocolError
from pol.incentives import payouts
from pol.incentives.forced_errors import ONE
from pol.incentives.jackpot import Jackpot
from pol.incentives.payouts import Deal

CLAIM_TRANSACTIONS = 3
"""Of a verifier: claim of the seat, verdict, disclosure."""
CATCH_TRANSACTIONS = 2
"""Of a watcher that has found something: commitment and catch."""


@dataclass(frozen=True)
class Stakes:
    """What a task puts at stake, in the smallest unit of the asset."""

    price: int
    """What the solver is paid."""
    verifier_fee: int
    solver_stake: int
    verifier_stake: int
    bond: int
    jackpot: int
    segments: int
    draws: int


@dataclass(frozen=True)
class Costs:
    """What work costs the parties, in the same unit."""

    training: int
    segment: int
    """Replay of one segment."""
    transaction: int
    dispute: int
    """All moves of one side of a dispute."""
    solver_capital: float = 0.0
    """What it costs to have the solver's stake locked for as long as the task takes."""
    verifier_capital: float = 0.0
    dispute_delay: float = 0.0
    """What it costs all parties of a task to have their money locked for one dispute, the longest possible."""
    seating_delay: float = 0.0
    """The same for one seating more: draw, verdict, watch, disclosure, challenges."""


@dataclass(frozen=True)
class Threat:
    """What the parties may gain by something else than their duty."""

    gain: int
    """Of a solver that fabricates ``least`` segments or more, beside the work that it saves."""
    least: int
    coalition: float
    """Share of all tickets that a coalition holds: below 1."""
    seeds: int = 1
    """Among how many seeds the adversary chooses: 2^bits of a beacon that it can bias."""
    false_reject: float = 0.0
    """Probability that honest work is rejected."""
    public_roots: bool = False
    """The true roots can be known without a replay: exact mode."""
    saved_by_one_lie: float = 1.0
    """The most of the training that one fabricated segment saves: of a state from which going on costs nothing, all."""
    can_wait: bool = False
    """Whoever sees a commitment of another has time left to replay."""
    watchers_known: bool = False
    """The verifier knows its watchers before its verdict."""
    catches_of_lies: bool = True
    """A commitment that names the truth is paid for a lie as for a planted error, wherever that is decided."""


def over_drawn(average: float, seeds: int, worth: Callable[[int], float]) -> float:
    """The mean of ``worth(k)``, k being drawn watchers: Poisson of this average, the fewest of ``seeds`` draws.

    ``worth`` falls with k and levels off. Tickets are drawn one by one, and where ``worth`` is convex that brings less.
    """
    mean, chance, above, k = 0.0, exp(-average), 1.0, 0
    while above > 1e-15:
        beyond = max(0.0, above - chance)
        mean += (above**seeds - beyond**seeds) * worth(k)
        k, above = k + 1, beyond
        chance *= average / k
    return mean


def temptations(segments: int, least: int, saved: float) -> list[int]:
    """The numbers of fabricated segments of which one pays best: theorem 3 of docs/spec/game.md."""
    # From so many on one more saves nothing more.
    enough = floor(1 / max(saved, 1 / segments) + 1e-9)
    return sorted({k for k in (1, enough, enough + 1, least - 1, least) if 1 <= k <= segments})


@dataclass(frozen=True)
class Choice:
    """A decision: what doing one's duty is worth, and what everything else is."""

    role: str
    state: str
    honest: float
    others: Mapping[str, float]

    @property
    def margin(self) -> float:
        """By how much duty is better than the best of everything else; not above 0: it isn't the best response."""
        return self.honest - max(self.others.values(), default=-inf)

    @property
    def temptation(self) -> str:
        """The best of everything else."""
        return max(self.others, key=self.others.__getitem__)


@dataclass(frozen=True)
class Game:
    """One task under the rules of a deployment.

    Raises:
        ProtocolError: numbers that are no task.
    """

    chance: Jackpot | None
    """Without it there are no planted errors."""
    stakes: Stakes
    costs: Costs
    threat: Threat

    def __post_init__(self) -> None:
        stakes, threat = self.stakes, self.threat
        if not 1 <= stakes.draws <= stakes.segments:
            raise ProtocolError(f"can't draw {stakes.draws} of {stakes.segments} segments")
        if not 1 <= threat.least <= stakes.segments:
            raise ProtocolError(f"the least cheat has 1 to {stakes.segments} segments, not {threat.least}")
        if not 0 <= threat.coalition < 1 or threat.seeds < 1:
            raise ProtocolError("a coalition holds a share of the tickets from 0 to below 1, and somebody draws")
        if not 0 <= threat.saved_by_one_lie <= 1:
            raise ProtocolError("one lie saves a part of the training from 0 to 1")

    # What the rules pay.

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
            profiled=not self.threat.public_roots,
        )

    @cached_property
    def rate(self) -> float:
        """Probability of a planted error."""
        return self.chance.rate / ONE if self.chance else 0.0

    @cached_property
    def share(self) -> int:
        """What a catch pays."""
        return self.chance.share(self.stakes.jackpot) if self.chance else 0

    @cached_property
    def tax(self) -> int:
        """What the task pays to the fund."""
        return self.chance.tax(self.stakes.jackpot) if self.chance else 0

    @cached_property
    def reward(self) -> int:
        """What a challenger wins that is right."""
        return payouts.challenger_right(self.deal).challenger - self.stakes.bond

    @cached_property
    def fall(self) -> int:
        """What a verifier loses whose verdict falls to a friend, who gives it back all that it wins."""
        return self.stakes.verifier_stake - self.reward

    @cached_property
    def verification(self) -> int:
        """Replaying all drawn segments."""
        return self.stakes.draws * self.costs.segment

    # Who sees what.

    @cached_property
    def awake(self) -> bool:
        """Whether watching pays: without it nobody replays what a verifier says."""
        return self.watcher().margin > 0

    def seen(self, found: float = 1.0) -> float:
        """Probability that a false verdict is found by a watcher of no coalition, each of whom finds it with ``found``.

        Tickets are drawn one by one: the chance that none finds it is at most exp of minus the average of those who do.
        An adversary that chooses among seeds needs one that suits.
        """
        if not (self.chance and self.awake):
            return 0.0
        alone = exp(-(1 - self.threat.coalition) * self.chance.watchers * found)
        return float((1 - alone) ** self.threat.seeds)

    def silenced(self, prize: float, found: float = 1.0) -> float:
        """What a false verdict is worth to whoever may buy the silence of the watchers that are drawn, once they are.

        Of k tickets whose holder has found it each is paid its catch, and the holder what a challenger wins: with less
        it would rather speak. Where that is more than the verdict brings, the verifier falls to a friend.
        """
        chance = self.chance
        if chance is None or not self.awake:
            return prize
        average = (1 - self.threat.coalition) * chance.watchers * found

        def worth(drawn: int) -> float:
            return max(prize - drawn * self.share - self.reward, float(-self.fall)) if drawn else prize

        return over_drawn(average, self.threat.seeds, worth)

    def missed(self) -> Iterator[tuple[int, float]]:
        """For every number of fabricated segments, from 1 on, the probability that the draw hits none of them."""
        n, draws, missed = self.stakes.segments, self.stakes.draws, 1.0
        for cheated in range(1, n + 1):
            missed *= max(0, n - draws - cheated + 1) / (n - cheated + 1)
            yield cheated, 1 - (1 - missed) ** self.threat.seeds

    def saved(self, cheated: int) -> float:
        """The most of the training that so many fabricated segments save: each itself and what one lie can."""
        each = max(self.threat.saved_by_one_lie, 1 / self.stakes.segments)
        return min(1.0, cheated * each)

    @cached_property
    def misses(self) -> Mapping[int, float]:
        """The same to look up."""
        return dict(self.missed())

    # What each role can do.

    def solver(self) -> Choice:
        """Train everything, or fabricate some segments; vanish; don't come."""
        deal, costs = self.deal, self.costs
        wrong = self.threat.false_reject
        withheld = payouts.data_withheld(deal, stood=False)
        # Who is about to be rejected may have a friend ask for data, and show none.
        paid, lost = payouts.accepted(deal).solver - deal.solver_stake, deal.solver_stake - withheld.challenger
        honest = (1 - wrong) * paid - wrong * lost - costs.training - costs.solver_capital
        # Whose verifiers don't replay detects nothing.
        looking = 1.0 if self.seen() else 0.0
        others = {
            "stay away": 0.0,
            "vanish": -float(deal.solver_stake - payouts.solver_defaulted(deal).submitter),
            "withhold data": -float(lost - withheld.submitter),
        }
        for cheated, missed in self.missed():
            passed = 1 - looking * (1 - missed)
            done = 1 - self.saved(cheated)
            gain = self.threat.gain if cheated >= self.threat.least else 0
            others[f"fabricate {cheated}"] = passed * paid - (1 - passed) * lost + gain - done * costs.training
            others[f"fabricate {cheated}"] -= costs.solver_capital
        return Choice("solver", "won a task", honest, others)

    def bribe(self) -> float:
        """The most that a false verdict is worth: to a solver to be rejected, or a submitter that wants all back."""
        deal = self.deal
        solver = deal.price + deal.solver_stake + self.threat.gain
        submitter = payouts.rejected(deal).submitter - payouts.accepted(deal).submitter
        return float(max(solver, submitter))

    def verifier(self) -> Iterator[Choice]:
        """In the seat: replay, guess some claims or all, lie for a bribe, withhold, leak, sell; forced and not.

        With watchers that are known before the verdict there are two states more: nobody of no coalition watches.
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
                # The solver is honest, so its own roots are the true ones.
                others[f"guess {guessed}"] = fee - work - sent
            else:
                others[f"guess {guessed}"] = lie(guessed, 0.0, work)
        return Choice("verifier", state, honest, others)

    def _sold(self, honest: float) -> float:
        """The secret to one ticket, for all that it is worth there; its buyer shows it if that pays more."""
        if self.reward >= self.share:
            return float(self.share) - self.stakes.verifier_stake
        return honest + self.share

    def watcher(self) -> Choice:
        """Of one drawn ticket: replay until a claim is wrong; or some of them, none, guess, copy, wait for others."""
        draws, costs = self.stakes.draws, self.costs
        prize = self.share - CATCH_TRANSACTIONS * costs.transaction

        def watch(looked: int) -> float:
            """Of ``draws`` claims in an order of its own, up to ``looked``, stopping at the first wrong one."""
            replays = (looked * (looked + 1) / 2 + (draws - looked) * looked) / draws
            return self.rate * looked / draws * prize - costs.segment * (self.rate * replays + (1 - self.rate) * looked)

        others = {"sleep": 0.0, "copy another's commitment": -float(costs.transaction)}
        others |= {f"look at {looked}": watch(looked) for looked in range(1, draws)}
        # In exact mode the odd claim shows itself, and so does the root that will stand.
        others["guess the root"] = self.rate * prize if self.threat.public_roots else -float(costs.transaction)
        if self.threat.can_wait and self.chance:
            another = 1 - exp(-(1 - self.threat.coalition) * self.chance.watchers)
            others["wait for another's commitment"] = self.rate * another * (prize - costs.segment * (draws + 1) / 2)
        return Choice("watcher", "drawn", watch(draws), others)

    def watching(self, tickets: int) -> float:
        """What each of so many drawn tickets in one hand earns: they are paid one by one, for one replay of all."""
        draws, costs, prize = self.stakes.draws, self.costs, self.share - CATCH_TRANSACTIONS * self.costs.transaction
        replays = costs.segment * (self.rate * (draws + 1) / 2 + (1 - self.rate) * draws)
        return self.rate * prize - replays / tickets

    def challenger(self) -> Iterator[Choice]:
        """Who has found a lie, with a liar that lets a friend win; and who has found nothing."""
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
        """A verifier that is right and is challenged: defend, or let the clock run out."""
        won = payouts.challenger_wrong(self.deal).holder
        return Choice(
            "verifier",
            "challenged, and right",
            float(won - self.costs.dispute - self.costs.segment),
            {"give up": -float(self.fall)},
        )

    def submitter(self) -> Choice:
        """Tasks of one's own for the jackpot: all tickets of a coalition watch, with the best of its seeds."""
        if self.chance is None:
            return Choice("submitter", "needs no model", 0.0, {})
        # Of each seed at most the same on average; the best of several isn't above their sum.
        share = self.threat.coalition * self.chance.watchers * self.share * self.threat.seeds
        forced = share * self.rate
        others = {"farm the jackpot": forced - self.tax}
        # Burning the seat gives another draw, for what burning costs.
        burning = share - self.fall * (1 / self.rate - 1)
        others["farm, and burn the seat until it is forced"] = burning - self.tax
        withholding = share - payouts.data_withheld(self.deal, stood=False).fund * (1 / self.rate - 1)
        others["farm, and withhold data until it is forced"] = withholding - self.tax
        if self.threat.catches_of_lies:
            others["farm by lying"] = share - self.fall - self.tax
        return Choice("submitter", "needs no model", 0.0, others)

    def coalition(self) -> Iterator[Choice]:
        """Solver and tickets, or submitter and tickets, in one hand: what the seat and blind watchers are worth."""
        deal, threat = self.deal, self.threat
        seat = 1 - (1 - threat.coalition) ** threat.seeds
        if not seat:
            return
        seen, fall = self.seen(), float(self.fall)
        price = float(deal.price)
        lost = float(deal.solver_stake - payouts.data_withheld(deal, stood=False).challenger)
        honest = price - self.costs.training
        # After a hit: in the seat it lies, until a lie is found and the seat goes to somebody else or to it again.
        hit = ((1 - seat) * -lost + seat * (1 - seen) * price - seat * seen * fall) / (1 - seat * seen)
        others = {}
        for cheated, missed in self.missed():
            done = 1 - self.saved(cheated)
            gain = threat.gain if cheated >= threat.least else 0
            for how, after in (("lie in the seat", hit), ("be rejected", -lost)):
                value = missed * price + (1 - missed) * after + gain - done * self.costs.training
                others[f"fabricate {cheated}, {how}"] = value
        yield Choice("coalition", "solver and tickets", honest, others)
        back = payouts.rejected(deal).submitter - payouts.accepted(deal).submitter
        lies = {"reject an honest proof": seat * ((1 - seen) * back - seen * fall)}
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


def without_planted_errors(game: Game) -> Game:
    """The same task where nobody errs on purpose and no jackpot is paid: the verifier's dilemma."""
    return Game(None, replace(game.stakes, jackpot=0), game.costs, game.threat)
