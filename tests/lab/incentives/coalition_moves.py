"""Moves of a coalition in every state of one task, as `best_strategy.solve` takes them (docs/spec/game.md, "A search").

Everybody else does its duty. Money is moved by `payouts`. Costs that a coalition would have outside are left out: work
for its lies, interest, its profiler, gas of seats. So an attack that gains nothing here loses outside.
"""

from dataclasses import dataclass, replace
from math import exp
from typing import NamedTuple

from lab.incentives.best_strategy import GameMove, State
from lab.incentives.game_inputs import CATCH_TRANSACTIONS, CLAIM_TRANSACTIONS, temptations
from lab.incentives.payoffs import Game
from lab.incentives.rule_variants import RuleVariant
from pol.errors import ProtocolError
from pol.incentives import payouts
from pol.incentives.payouts import Payout

CLEAN, HIT, LOOKS, SEEN = "clean", "hit", "looks", "seen"
"""Of a proof: all drawn segments are true; one is false; all are true and land where second looks decide; all are true,
and an outsider objects to another one."""
THEIRS, OWN = "an outsider isn't served", "a word of its own"
"""Who has said first that the solver doesn't serve: an outsider, or the coalition."""
NEGLIGIBLE = 1e-12


class Log(NamedTuple):
    """A committed log, whether others than the coalition can read it, and the first word that they can't."""

    proof: str
    served: bool = True
    said: str = ""

    def __str__(self) -> str:
        return ", ".join(filter(None, (self.proof, "" if self.served else "served to friends only", self.said)))


@dataclass(frozen=True)
class Coalition:
    """Who is in it.

    Raises:
        ProtocolError: a share of the tickets that isn't from 0 to below 1.
    """

    submitter: bool
    solver: bool
    friend: bool
    """Accounts that challenge, object, ask for data, claim defaults and show secrets."""
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


@dataclass(frozen=True)
class CoalitionMoves:
    """Moves of one coalition in every state of one task."""

    game: Game
    coalition: Coalition
    rules: RuleVariant
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

    def withheld(self, stood: bool, seat: bool, log: Log, looked: int = 0) -> GameMove:
        """The solver shows no data to a demand, and the auction begins anew. A word gets what a demander would."""
        deal = replace(self.game.deal, looked=looked, objected=self.reward if log.proof == SEEN else 0)
        paid = payouts.data_withheld(deal, stood=stood, said=bool(log.said))
        word = paid.challenger - deal.word if log.said == OWN else 0
        gain = self.received(replace(paid, challenger=0) if log.said else paid, seat) + word
        return GameMove("withhold data", gain - deal.solver_stake - seat * deal.verifier_stake + self.anew)

    def word(self, log: Log, own: bool, objected: int = 0) -> GameMove:
        """Who sits says that the solver doesn't serve: the coalition, or an outsider that isn't served."""
        name = "say that it isn't served" if own else "serve friends only"
        if self.rules.words == 2 and not log.said:
            return GameMove(name, 0.0, ((1.0, ("seat", log._replace(said=OWN if own else THEIRS))),))
        deal, who = replace(self.game.deal, objected=objected), self.coalition
        paid = self.rules.not_served(deal)
        share = paid.holder - deal.verifier_stake
        gain = who.submitter * paid.submitter - who.solver * (deal.solver_stake - paid.solver) + objected
        return GameMove(name, gain + share * (own + (log.said == OWN)) + self.anew)

    @property
    def reward(self) -> int:
        """Of an objector that is right, as the first one."""
        stakes, tax = self.game.stakes, self.game.tax
        segment = payouts.segment_price(stakes.price, stakes.segments, stakes.verifier_fee, stakes.draws)
        stake = payouts.slashable(stakes.solver_stake, stakes.verifier_fee, self.looks, stakes.draws)
        defense = segment * (1 + self.looks) + self.game.costs.dispute
        return payouts.objector_reward(stake, payouts.objection_bond(defense, stake, 0), tax)

    def fallen(self) -> int:
        """The coalition's verdict falls: to a friend, if it has one."""
        paid = payouts.challenger_right(self.game.deal)
        return self.lost(replace(paid, challenger=paid.challenger - self.game.deal.bond))

    def caught(self, count: int) -> float:
        """So many own tickets catch."""
        catch = payouts.error_found(self.game.deal).challenger - CATCH_TRANSACTIONS * self.game.costs.transaction
        return float(count * max(0, catch))

    # What can be done.

    def moves(self, state: State) -> list[GameMove]:
        """The moves in a state; duty is the first."""
        assert isinstance(state, tuple)
        name, *facts = state
        found: list[GameMove] = getattr(self, f"_{name}")(*facts)
        return found

    def _start(self) -> list[GameMove]:
        come = GameMove("come", 0.0, ((1.0, ("train",)),))
        return [come, GameMove("stay away", 0.0)] if self.coalition.submitter or self.coalition.solver else [come]

    def _train(self) -> list[GameMove]:
        game, who = self.game, self.coalition
        deal, threat, cost = game.deal, game.threat, game.costs.training
        # A solver outside serves everybody; one inside decides that when others want to read.
        seat = ((1.0, ("seat", Log(CLEAN, not who.solver))),)
        if not who.solver:
            # A model is worth to its submitter what it pays for it, or it wouldn't ask.
            paid = deal.bidding_escrow - payouts.accepted(deal).submitter
            return [GameMove("have it trained", float(who.submitter * paid), seat)]
        found = [GameMove("train", -float(cost), seat)]
        tempting = {
            *temptations(game.stakes.segments, threat.least, threat.saved_by_one_lie),
            *temptations(game.stakes.segments, threat.least, 1 / game.stakes.segments),
        }
        for way in game.fabrications():
            if way.cheated not in tempting:
                continue
            gain = threat.gain if way.cheated >= threat.least and not who.submitter else 0
            seen, drawn = 1 - way.unseen, 1 - way.missed
            chances = ((seen * way.missed, SEEN), (way.unseen * way.missed, CLEAN), (drawn, HIT))
            after = tuple((part, ("seat", Log(proof, served=False))) for part, proof in chances if part > 0)
            found.append(GameMove(f"fabricate {way.name}", gain - (1 - way.saved) * cost, after))
        if who.submitter:
            # Its own task can be one that costs nothing to train.
            found.append(GameMove("train next to nothing", 0.0, seat))
        if self.looks:
            found.append(
                GameMove("land where looks decide", -float(cost), ((1.0, ("seat", Log(LOOKS, served=False))),))
            )
        if who.submitter:
            found.append(GameMove("cancel", 0.0))
        return found

    def _seat(self, log: Log) -> list[GameMove]:
        share, found = self.coalition.share, list[GameMove]()
        for sits in (self.sits, False) if share and self.rules.words == 0 and not log.served else (self.sits,):
            ours = share if sits else float(share > 0)
            chances = ((ours, ("drawn", log)), ((1 - ours) * sits, ("theirs", log)))
            found.append(
                GameMove("claim the seat if drawn" if sits == self.sits else "serve friends only", 0.0, chances)
            )
        if share and self.sits:
            found.append(GameMove("leave the seat", 0.0, ((1.0, ("theirs", log)),)))
        return [*found, self.withheld(stood=False, seat=False, log=log)] if self.coalition.solver else found

    def _drawn(self, log: Log) -> list[GameMove]:
        rate = self.game.rate
        return [GameMove("see its duty", 0.0, ((1 - rate, ("unforced", log)), (rate, ("forced", log))))]

    def _unforced(self, log: Log) -> list[GameMove]:
        return self._duty(log, planted=False)

    def _forced(self, log: Log) -> list[GameMove]:
        return self._duty(log, planted=True)

    def _duty(self, log: Log, planted: bool) -> list[GameMove]:
        """The verifier of the coalition knows whether it has to err."""
        game, deal = self.game, self.game.deal
        work = -game.verification - (log.proof == LOOKS) * game.verification * self.looks
        own, again = self.own(), ((1.0, ("seat", log)),)
        chances: tuple[tuple[float, State], ...]
        if planted:
            chances = tuple((part, ("planted", log, count)) for part, count in own)
        else:
            chances = ((1.0, ("stands", log, log.proof == HIT, True)),)
        found = [GameMove("do its duty", float(work), chances)]
        # Nobody looks at what nobody can read.
        alone = exp(-self.others) if log.served else 1.0
        for kind in ("replay", "entry"):
            lie = tuple(
                (part * seen, ("lied", log, kind, planted, looking, count))
                for part, count in own
                for looking, seen in ((False, alone), (True, 1 - alone))
                if seen > 0
            )
            found.append(GameMove(f"lie in its {kind}", 0.0, lie))
        lapse = "let the seat lapse, no round recorded"
        found.append(GameMove(lapse, float(self.lost(self.rules.unrecorded_lapse(deal))), again))
        found.append(GameMove("let the seat lapse", float(self.lost(payouts.seat_defaulted(deal))), again))
        found.append(GameMove("let a friend show its secret", float(self.lost(payouts.secret_leaked(deal))), again))
        if planted:
            found.append(
                GameMove("the truth though forced", float(work + self.lost(payouts.secret_withheld(deal))), again)
            )
        if self.rules.words:
            found.append(self.word(log, own=True))
        return [*found, self.withheld(stood=False, seat=True, log=log)] if self.coalition.solver else found

    def _planted(self, log: Log, count: int) -> list[GameMove]:
        """Its own watchers know which claim is wrong, and what is right."""
        catch, kept = self.caught(count), float(self.lost(payouts.secret_withheld(self.game.deal)))
        return [
            GameMove("catch, disclose", catch, ((1.0, ("stands", log, log.proof == HIT, True)),)),
            GameMove("catch, withhold the secret", catch + kept, ((1.0, ("seat", log)),)),
        ]

    def _lied(self, log: Log, kind: str, planted: bool, looking: bool, count: int) -> list[GameMove]:
        """It knows who watches, and decides who catches it."""
        catch, shown = self.caught(count), kind in self.rules.caught
        found = 0.0
        if looking and shown:
            # Who stops at the first wrong claim may have stopped at the planted one.
            mean = self.others
            found = (1 - exp(-mean / 2)) / (1 - exp(-mean)) if planted else 1.0
        beside = catch if planted else 0.0
        # A false distance or replay turns the verdict round.
        stands: State = ("stands", log, log.proof != HIT, True)
        wait = GameMove("wait", beside, ((1 - found, stands), (found, ("fallen", log))))
        own = max(catch if shown else 0.0, beside)
        return [wait, GameMove("catch itself", own, ((1.0, ("fallen", log)),))]

    def _fallen(self, log: Log) -> list[GameMove]:
        return [GameMove("resign", float(self.fallen()), ((1.0, ("seat", log)),))]

    def _theirs(self, log: Log) -> list[GameMove]:
        """A verifier of no coalition has the seat."""
        if not log.served:
            return self._asked(log)
        game, worse = self.game, 0.0
        if log.proof == LOOKS and self.damage:
            draws, fee = game.stakes.draws, game.stakes.verifier_fee
            work = game.verification * (1 + self.looks) + CLAIM_TRANSACTIONS * game.costs.transaction
            worse = float(max(0, work - fee - draws * self.rules.look_fee(fee, self.looks, draws)))
        chances = tuple((part, ("watching", log, count)) for part, count in self.own())
        found = [GameMove("wait for its verdict", worse, chances)]
        return [*found, self.withheld(stood=False, seat=False, log=log)] if self.coalition.solver else found

    def _asked(self, log: Log) -> list[GameMove]:
        """A verifier of no coalition wants to read what nobody else has read yet: all is served, or it says a word."""
        found = [GameMove("serve", 0.0, ((1.0, ("theirs", log._replace(served=True))),))]
        if self.rules.words:
            found.append(self.word(log, own=False))
            if log.said and self.coalition.friend:
                first = self.word(log, own=False, objected=self.reward)
                found.append(replace(first, name="serve friends only, one of whom objects first"))
        return [*found, self.withheld(stood=False, seat=False, log=log)]

    def _watching(self, log: Log, count: int) -> list[GameMove]:
        """One replay serves all tickets of the coalition."""
        game, after = self.game, ((1.0, ("stands", log, log.proof == HIT, False)),)
        if not count:
            return [GameMove("no ticket is drawn", 0.0, after)]
        draws, rate = game.stakes.draws, game.rate
        replays = rate * (draws + 1) / 2 + (1 - rate) * draws
        watch = GameMove("watch", rate * self.caught(count) - game.costs.segment * replays, after)
        return [watch, GameMove("sleep", 0.0, after)]

    def _stands(self, log: Log, rejects: bool, seat: bool) -> list[GameMove]:
        """A verdict that nobody has refuted."""
        who, looked = self.coalition, 0
        if log.proof == LOOKS:
            draws = self.game.stakes.draws
            looked = draws * self.rules.look_fee(self.game.deal.verifier_fee, self.looks, draws)
        deal = replace(self.game.deal, looked=looked)
        put = who.submitter * deal.bidding_escrow + who.solver * deal.solver_stake + seat * deal.verifier_stake
        fell = payouts.rejected(replace(deal, objected=self.reward))
        # Nobody objects to what it can't read.
        is_false = log.proof == SEEN and log.served
        # The account that posts the verdict has its own word back.
        contradicted = bool(log.said) and not (log.said == OWN and seat)
        paid = payouts.rejected(deal) if rejects else self.rules.accepted(deal, contradicted=contradicted)
        paid = fell if is_false else paid
        word = 0 if is_false or not contradicted else self.contradicted(log)
        found = [GameMove("settle", float(self.received(paid, seat) - put + word))]
        if not who.solver:
            return found
        if who.friend:
            gain = self.received(fell, seat) + self.reward - put
            found.append(GameMove("let a friend object first", float(gain)))
        return [*found, self.withheld(stood=True, seat=seat, log=log, looked=looked)]

    def contradicted(self, log: Log) -> int:
        """What the word brings that another's verdict contradicts."""
        paid = self.rules.word_to_solver and self.coalition.solver
        return (int(paid) - (log.said == OWN)) * self.game.deal.word
