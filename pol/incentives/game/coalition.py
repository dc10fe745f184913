"""One coalition in every role that it can get, and the best joint strategy for it (docs/spec/game.md, "A search").

Everybody else does its duty. Money is moved by `payouts`. What the coalition needs not pay here and would outside:
work for its lies, interest, its profiler, gas of seats; so what is found to bring nothing brings less than nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import product
from math import exp

from pol.errors import ProtocolError
from pol.incentives import payouts
from pol.incentives.game.best_strategy import Move, Solution, State, solve
from pol.incentives.game.payoffs import CATCH_TRANSACTIONS, CLAIM_TRANSACTIONS, Game, temptations
from pol.incentives.jackpot import Jackpot
from pol.incentives.payouts import Deal, Payout

CLEAN, HIT, LOOKS = "clean", "hit", "looks"
"""Of a proof: all drawn segments are true; one is false; all are true and land where second looks decide."""
NEGLIGIBLE = 1e-12


def excused(deal: Deal) -> Payout:
    """A verifier lets its seat lapse before the round of its duty is recorded, as it once could."""
    return Payout(holder=deal.verifier_stake)


def _unpriced(fee: int, looks: int, draws: int) -> int:
    return 0


def covers_jackpot(chance: Jackpot, reserved: int) -> int:
    """A fall costs the whole jackpot, so no number of own catches is worth one."""
    return 2 * reserved


def covers_average(chance: Jackpot, reserved: int) -> int:
    """A fall costs what all watchers of a seating catch on average: less than a coalition may see drawn."""
    return -(-2 * chance.watchers * reserved // chance.shares)


@dataclass(frozen=True)
class Rules:
    """Rules that were once other rules."""

    unrecorded_lapse: Callable[[Deal], Payout] = payouts.seat_defaulted
    """A verifier's seat lapses and nobody has recorded the round of its duty."""
    caught: frozenset[str] = frozenset({"replay", "entry"})
    """Lies that a watcher's commitment refutes: in a replay; in anything else of an entry."""
    look_fee: Callable[[int, int, int], int] = payouts.look_fee
    verifier_stake: Callable[[Jackpot, int], int] = covers_jackpot
    """The least that terms may ask for, of a jackpot."""


RULES = Rules()
REVERTED: Mapping[str, Rules] = {
    "a lapse before the round is recorded is free": Rules(unrecorded_lapse=excused),
    "only a replay refutes": Rules(caught=frozenset({"replay"})),
    "second looks are unpriced": Rules(look_fee=_unpriced),
    "stakes cover average catches": Rules(verifier_stake=covers_average),
}
"""Each rule as it was."""


@dataclass(frozen=True)
class Coalition:
    """Who is in it.

    Raises:
        ProtocolError: a share of the tickets that isn't from 0 to below 1.
    """

    submitter: bool
    solver: bool
    friend: bool
    """Accounts that challenge, ask for data, claim defaults and show secrets."""
    share: float
    """Of all tickets, which take seats and watch."""

    def __post_init__(self) -> None:
        if not 0 <= self.share < 1:
            raise ProtocolError("a coalition holds a share of the tickets from 0 to below 1")

    @property
    def members(self) -> str:
        """Its roles, for people."""
        names = [name for name in ("submitter", "solver", "friend") if getattr(self, name)]
        return ", ".join([*names, *([f"{self.share:.0%} of tickets"] if self.share else [])])


def coalitions(share: float) -> Iterator[Coalition]:
    """Every set of roles, with so many of the tickets or none."""
    for submitter, solver, friend, held in product((True, False), (True, False), (True, False), sorted({share, 0.0})):
        if submitter or solver or friend or held:
            yield Coalition(submitter, solver, friend, held)


@dataclass(frozen=True)
class Found:
    """The best that a coalition can do."""

    coalition: Coalition
    solution: Solution
    excess: int
    """What it brings above duty, and above staying away; in the smallest unit, rounded down if it is below."""

    @property
    def lines(self) -> list[str]:
        """Where to leave one's duty and for what, for people; numbers of own tickets that watch are put together."""
        told: dict[str, list[str]] = {}
        for state, move in self.solution.deviations.items():
            where, count = _told(state)
            told.setdefault(f"{where}: {move}", []).extend(count)
        return [line + (f" ({', '.join(counts)} own tickets drawn)" if counts else "") for line, counts in told.items()]


def _told(state: State) -> tuple[str, list[str]]:
    """A state in words, and apart from them how many own tickets have been drawn."""
    assert isinstance(state, tuple)
    name, *facts = state
    count = [str(facts.pop())] if name in ("lied", "planted", "watching") else []
    if name == "lied":
        _, kind, planted, looking = facts
        others = "others watch" if looking else "nobody else watches"
        return f"after a lie in its {kind}{' beside the planted error' if planted else ''}, {others}", count
    if name == "stands":
        return f"a verdict stands that {'rejects' if facts[1] else 'accepts'}", count
    return " ".join([name, *(f"({fact})" for fact in facts)]), count


def best(game: Game, coalition: Coalition, rules: Rules = RULES, looks: int = 0, damage: bool = False) -> Found:
    """The coalition's best joint strategy in one task; many tasks are as many times that.

    ``looks``: reruns of a second look. ``damage``: counts what honest verifiers work for without pay as gained.
    """
    if looks:
        # Terms with second looks ask for a stake that pays for one at each drawn segment.
        looked = game.stakes.draws * rules.look_fee(game.stakes.verifier_fee, looks, game.stakes.draws)
        game = replace(game, stakes=replace(game.stakes, solver_stake=game.stakes.solver_stake + looked))
    tree = _Tree(game, coalition, rules, looks, damage)
    duty = solve(("start",), lambda state: tree.moves(state)[:1]).duty
    solution = solve(("start",), replace(tree, anew=max(duty, 0.0)).moves)
    # Who brings the task or the proof may as well not come.
    least = max(solution.duty, 0.0) if coalition.submitter or coalition.solver else solution.duty
    excess = solution.best - least
    # Amounts of a task have 20 digits and floats 15.
    scale = max(game.deal.escrow, game.stakes.solver_stake, game.stakes.verifier_stake)
    return Found(coalition, solution, 0 if abs(excess) <= 1e-9 * scale else int(excess // 1))


@dataclass(frozen=True)
class _Tree:
    """Moves of one coalition in every state of one task."""

    game: Game
    coalition: Coalition
    rules: Rules
    looks: int
    damage: bool
    anew: float = 0.0
    """What it is worth that the auction begins anew: duty from there on, as another round of the same counts as another
    task. If nothing brings more than duty before it, nothing does in any number of rounds."""

    # Who comes.

    @property
    def sits(self) -> bool:
        """Whether a verifier of no coalition takes the seat: if the fee is worth its work."""
        game = self.game
        return game.stakes.verifier_fee >= game.verification + CLAIM_TRANSACTIONS * game.costs.transaction

    @property
    def others(self) -> float:
        """Watchers of no coalition, on average; none if watching doesn't pay."""
        chance = self.game.chance
        return (1 - self.coalition.share) * chance.watchers if chance and self.game.awake else 0.0

    def own(self) -> list[tuple[float, int]]:
        """How many tickets of the coalition watch a seating: Poisson, up to all shares of the jackpot."""
        chance = self.game.chance
        mean, most = (self.coalition.share * chance.watchers, chance.shares) if chance else (0.0, 0)
        found, part = [], exp(-mean)
        for count in range(most):
            found.append((part, count))
            part *= mean / (count + 1)
        found.append((max(0.0, 1 - sum(p for p, _ in found)), most))
        return [(p, count) for p, count in found if p > NEGLIGIBLE]

    # What comes in.

    def received(self, paid: Payout, seat: bool) -> int:
        """What the coalition gets of a payout; ``seat``: the verifier is its own."""
        who = self.coalition
        return (
            who.submitter * paid.submitter
            + who.solver * paid.solver
            + seat * paid.holder
            + who.friend * paid.challenger
        )

    def lost(self, paid: Payout) -> int:
        """Change of the coalition's money when its verifier's stake is released so."""
        return self.received(paid, seat=True) - self.game.deal.verifier_stake

    def withheld(self, stood: bool, seat: bool, looked: int = 0) -> Move:
        """The solver shows no data to a demand, and the auction begins anew."""
        deal = replace(self.game.deal, looked=looked)
        paid = self.received(payouts.data_withheld(deal, stood=stood), seat)
        gain = paid - deal.solver_stake - seat * deal.verifier_stake
        return Move("withhold data", gain + self.anew)

    def fallen(self) -> int:
        """The coalition's verdict falls: to a friend, if it has one."""
        paid = payouts.challenger_right(self.game.deal)
        return self.lost(replace(paid, challenger=paid.challenger - self.game.deal.bond))

    def caught(self, count: int) -> float:
        """So many own tickets catch."""
        catch = payouts.error_found(self.game.deal).challenger - CATCH_TRANSACTIONS * self.game.costs.transaction
        return float(count * max(0, catch))

    # What can be done.

    def moves(self, state: State) -> list[Move]:
        """The moves in a state; duty is the first."""
        assert isinstance(state, tuple)
        name, *facts = state
        found: list[Move] = getattr(self, f"_{name}")(*facts)
        return found

    def _start(self) -> list[Move]:
        come = Move("come", 0.0, ((1.0, ("train",)),))
        return [come, Move("stay away", 0.0)] if self.coalition.submitter or self.coalition.solver else [come]

    def _train(self) -> list[Move]:
        game, who = self.game, self.coalition
        deal, threat, cost = game.deal, game.threat, game.costs.training
        seat = ((1.0, ("seat", CLEAN)),)
        if not who.solver:
            # A model is worth to its submitter what it pays for it, or it wouldn't ask.
            paid = deal.bidding_escrow - payouts.accepted(deal).submitter
            return [Move("have it trained", float(who.submitter * paid), seat)]
        found = [Move("train", -float(cost), seat)]
        for cheated in temptations(game.stakes.segments, threat.least, threat.saved_by_one_lie):
            missed = game.misses[cheated]
            gain = threat.gain if cheated >= threat.least and not who.submitter else 0
            after = ((missed, ("seat", CLEAN)), (1 - missed, ("seat", HIT)))
            found.append(Move(f"fabricate {cheated}", gain - (1 - game.saved(cheated)) * cost, after))
        if who.submitter:
            # Its own task can be one that costs nothing to train.
            found.append(Move("train next to nothing", 0.0, seat))
        if self.looks:
            found.append(Move("land where looks decide", -float(cost), ((1.0, ("seat", LOOKS)),)))
        if who.submitter:
            found.append(Move("cancel", 0.0))
        return found

    def _seat(self, proof: str) -> list[Move]:
        share = self.coalition.share
        ours = share if self.sits else float(share > 0)
        chances = ((ours, ("drawn", proof)), ((1 - ours) * self.sits, ("theirs", proof)))
        found = [Move("claim the seat if drawn", 0.0, chances)]
        if share and self.sits:
            found.append(Move("leave the seat", 0.0, ((1.0, ("theirs", proof)),)))
        return [*found, self.withheld(stood=False, seat=False)] if self.coalition.solver else found

    def _drawn(self, proof: str) -> list[Move]:
        rate = self.game.rate
        return [Move("see its duty", 0.0, ((1 - rate, ("unforced", proof)), (rate, ("forced", proof))))]

    def _unforced(self, proof: str) -> list[Move]:
        return self._duty(proof, planted=False)

    def _forced(self, proof: str) -> list[Move]:
        return self._duty(proof, planted=True)

    def _duty(self, proof: str, planted: bool) -> list[Move]:
        """The verifier of the coalition knows whether it has to err."""
        game, deal = self.game, self.game.deal
        work = -game.verification - (proof == LOOKS) * game.verification * self.looks
        own, again = self.own(), ((1.0, ("seat", proof)),)
        chances: tuple[tuple[float, State], ...]
        if planted:
            chances = tuple((part, ("planted", proof, count)) for part, count in own)
        else:
            chances = ((1.0, ("stands", proof, proof == HIT, True)),)
        found = [Move("do its duty", float(work), chances)]
        alone = exp(-self.others)
        for kind in ("replay", "entry"):
            lie = tuple(
                (part * seen, ("lied", proof, kind, planted, looking, count))
                for part, count in own
                for looking, seen in ((False, alone), (True, 1 - alone))
                if seen > 0
            )
            found.append(Move(f"lie in its {kind}", 0.0, lie))
        lapse = "let the seat lapse, no round recorded"
        found.append(Move(lapse, float(self.lost(self.rules.unrecorded_lapse(deal))), again))
        found.append(Move("let the seat lapse", float(self.lost(payouts.seat_defaulted(deal))), again))
        found.append(Move("let a friend show its secret", float(self.lost(payouts.secret_leaked(deal))), again))
        if planted:
            found.append(Move("the truth though forced", float(work + self.lost(payouts.secret_withheld(deal))), again))
        return [*found, self.withheld(stood=False, seat=True)] if self.coalition.solver else found

    def _planted(self, proof: str, count: int) -> list[Move]:
        """Its own watchers know which claim is wrong, and what is right."""
        catch, kept = self.caught(count), float(self.lost(payouts.secret_withheld(self.game.deal)))
        return [
            Move("catch, disclose", catch, ((1.0, ("stands", proof, proof == HIT, True)),)),
            Move("catch, withhold the secret", catch + kept, ((1.0, ("seat", proof)),)),
        ]

    def _lied(self, proof: str, kind: str, planted: bool, looking: bool, count: int) -> list[Move]:
        """It knows who watches, and decides who catches it."""
        catch, shown = self.caught(count), kind in self.rules.caught
        found = 0.0
        if looking and shown:
            # Who stops at the first wrong claim may have stopped at the planted one.
            mean = self.others
            found = (1 - exp(-mean / 2)) / (1 - exp(-mean)) if planted else 1.0
        beside = catch if planted else 0.0
        # A false distance or replay turns the verdict round.
        stands: State = ("stands", proof, proof != HIT, True)
        wait = Move("wait", beside, ((1 - found, stands), (found, ("fallen", proof))))
        own = max(catch if shown else 0.0, beside)
        return [wait, Move("catch itself", own, ((1.0, ("fallen", proof)),))]

    def _fallen(self, proof: str) -> list[Move]:
        return [Move("resign", float(self.fallen()), ((1.0, ("seat", proof)),))]

    def _theirs(self, proof: str) -> list[Move]:
        """A verifier of no coalition has the seat."""
        game, worse = self.game, 0.0
        if proof == LOOKS and self.damage:
            draws, fee = game.stakes.draws, game.stakes.verifier_fee
            work = game.verification * (1 + self.looks) + CLAIM_TRANSACTIONS * game.costs.transaction
            worse = float(max(0, work - fee - draws * self.rules.look_fee(fee, self.looks, draws)))
        chances = tuple((part, ("watching", proof, count)) for part, count in self.own())
        found = [Move("wait for its verdict", worse, chances)]
        return [*found, self.withheld(stood=False, seat=False)] if self.coalition.solver else found

    def _watching(self, proof: str, count: int) -> list[Move]:
        """One replay serves all tickets of the coalition."""
        game, after = self.game, ((1.0, ("stands", proof, proof == HIT, False)),)
        if not count:
            return [Move("no ticket is drawn", 0.0, after)]
        draws, rate = game.stakes.draws, game.rate
        replays = rate * (draws + 1) / 2 + (1 - rate) * draws
        watch = Move("watch", rate * self.caught(count) - game.costs.segment * replays, after)
        return [watch, Move("sleep", 0.0, after)]

    def _stands(self, proof: str, rejects: bool, seat: bool) -> list[Move]:
        """A verdict that nobody has refuted."""
        who, looked = self.coalition, 0
        if proof == LOOKS:
            draws = self.game.stakes.draws
            looked = draws * self.rules.look_fee(self.game.deal.verifier_fee, self.looks, draws)
        deal = replace(self.game.deal, looked=looked)
        paid = self.received(payouts.rejected(deal) if rejects else payouts.accepted(deal), seat)
        put = who.submitter * deal.bidding_escrow + who.solver * deal.solver_stake + seat * deal.verifier_stake
        found = [Move("settle", float(paid - put))]
        return [*found, self.withheld(stood=True, seat=seat, looked=looked)] if who.solver else found
