"""Parameters that make honesty the best response, from the value of a task and the costs of work (docs/spec/game.md).

These are closed forms of the conditions of the game; `Game.choices` enumerates all deviations and checks them.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, exp, log

from lab.incentives.amounts import amount
from lab.incentives.game_inputs import (
    CATCH_TRANSACTIONS,
    CLAIM_TRANSACTIONS,
    Costs,
    Stakes,
    Threat,
    over_drawn,
    temptations,
)
from lab.incentives.payoffs import Game
from lab.incentives.task_needs import Needs
from pol.claims.sample_size import detection_probability
from pol.errors import ProtocolError
from pol.incentives.forced_errors import LARGEST_RATE, LEAST_RATE, ONE
from pol.incentives.jackpot import JackpotRules
from pol.incentives.payouts import (
    DEMANDER_OF_SOLVER_STAKE,
    MOST_OF_SOLVER_STAKE,
    SAYER_OF_BOND,
    SUBMITTER_OF_SOLVER_STAKE,
    TREASURY_OF_PRICE,
    UNSERVED_OF_LOSS,
    WHOLE,
    WORDS,
    objection_bond,
    segment_price,
    share_up,
)

HOUR, DAY, YEAR = 3600, 86_400, 365 * 86_400
LONGEST_WINDOW, LONGEST_CLOCK, LONGEST_TRAINING = 90 * DAY, 14 * DAY, 365 * DAY
REPLAY_GRACE, MOVE_GRACE = 1_800, 300
"""The least graces, in seconds: enough for a transaction while blocks are full."""
SPARE = 1.25
"""A grace and the training window, over the work of the slowest party."""
REPLAY_POSITIONS, MOVE_POSITIONS = 17, 29
"""Positions of the longest dispute with 16 parts a move (docs/spec/dispute.md, "Clocks")."""
BURN = 10 * (1 + 1e-9)
"""Least ratio of an attacker's loss to the harm of honest parties."""
MOST = 1 << 120
DOUBTFUL = 0.05
"""Chance of no watch reward after `Needs.paid_within` watches."""


@dataclass(frozen=True)
class Windows:
    """Windows in seconds, as long as the slowest party needs them."""

    training: int
    watch: int
    seating: int
    """From an empty seat to the end of the challenges."""
    longest_dispute: int


@dataclass(frozen=True)
class Design:
    """Parameters, and their game."""

    needs: Needs
    chance: JackpotRules
    windows: Windows
    game: Game

    @property
    def stakes(self) -> Stakes:
        """The stakes of the task."""
        return self.game.stakes

    @property
    def detection(self) -> float:
        """Probability that the least cheat is drawn."""
        found = detection_probability(self.stakes.segments, self.needs.least, self.stakes.draws)
        return float(found) ** self.needs.seeds

    @property
    def one_lie_detection(self) -> float:
        """Probability that one fabricated segment is drawn."""
        return float(1 - self.game.misses[1])

    @property
    def pays(self) -> int:
        """Total cost to the submitter."""
        return self.stakes.price + self.overhead

    @property
    def overhead(self) -> int:
        """Cost to the submitter beside the price."""
        return self.game.deal.escrow - self.stakes.price


def design(needs: Needs) -> Design:
    """The cheapest parameters for the submitter with which honesty is everybody's best response.

    The submitter pays all costs: training, replays, transactions, interest on stakes, rejected honest work. Among the
    designs with a solver's stake up to `Needs.most_stake`, the cheapest is taken.

    Raises:
        ProtocolError: there are none.
    """
    designs = alternatives(needs)
    surest = max(d.detection for d in designs)
    designs = [d for d in designs if d.detection >= needs.detection]
    if not designs:
        raise ProtocolError(f"a cheat in {needs.least} of {needs.segments} segments is drawn with {surest:.3f} at most")
    most = 2 * needs.task_value if needs.most_stake is None else needs.most_stake
    stakes = min(d.stakes.solver_stake for d in designs)
    designs = [d for d in designs if d.stakes.solver_stake <= most]
    if not designs:
        raise ProtocolError(f"cheating is a loss with a stake of {amount(stakes)}, not with one of {amount(most)}")
    best = min(designs, key=lambda d: d.pays)
    if best.pays > needs.task_value:
        raise ProtocolError(f"the task is worth {amount(needs.task_value)} and costs {amount(best.pays)}")
    return best


def alternatives(needs: Needs) -> list[Design]:
    """A design for each number of draws that has one. More draws cost more and need a lower stake.

    Raises:
        ProtocolError: there is none.
    """
    chance = _chance(needs)
    designs, failed = [], ProtocolError("no draws")
    for draws in range(1, min(needs.most_draws, needs.segments) + 1):
        try:
            designs.append(_settle(needs, chance, draws, _windows(needs, draws)))
        except ProtocolError as error:
            failed = error
    if not designs:
        raise failed
    return designs


def _chance(needs: Needs) -> JackpotRules:
    """As many watchers as the confidence needs, and as rare forced errors as predictable pay admits."""
    alone = 1 - needs.confidence ** (1 / needs.seeds)
    watchers = ceil(-log(alone) / (1 - needs.coalition))
    rate = min(max(ceil((1 - DOUBTFUL ** (1 / needs.paid_within)) * ONE), LEAST_RATE), LARGEST_RATE)
    if needs.coalition * needs.seeds >= 1.25:
        raise ProtocolError("the coalition earns more than the tax with tasks of its own")
    return JackpotRules(watchers, 2 * watchers, rate)


def _windows(needs: Needs, draws: int) -> Windows:
    segment = needs.train_seconds / needs.segments
    clock = max(DAY, ceil(4 * segment * needs.slowest))
    grace = max(REPLAY_GRACE, ceil(SPARE * segment * needs.slowest))
    verification = max(HOUR, ceil(2 * draws * segment * needs.slowest))
    training = max(HOUR, ceil(SPARE * needs.train_seconds * needs.slowest))
    watch = verification + needs.commit_window
    for name, seconds, most in (
        ("verifying the draws", watch, LONGEST_WINDOW),
        ("making all moves of one side of a dispute", clock, LONGEST_CLOCK),
        ("training", training, LONGEST_TRAINING),
    ):
        if seconds > most:
            raise ProtocolError(f"{name} takes the slowest party {seconds} s and the contract admits {most}")
    seating = HOUR + verification + watch + 6 * HOUR + DAY
    dispute = 2 * clock + REPLAY_POSITIONS * grace + MOVE_POSITIONS * MOVE_GRACE
    return Windows(training, watch, seating, dispute)


def _settle(needs: Needs, chance: JackpotRules, draws: int, windows: Windows) -> Design:
    """Amounts for a number of draws. Each bounds others from below, so they grow until all bounds hold."""
    more, rate, segment = 1 + needs.margin, chance.rate / ONE, needs.segment
    second = needs.capital / YEAR
    verification = draws * segment
    share = (
        ceil((more * verification - segment * rate * (draws - 1) / 2) / rate) + CATCH_TRANSACTIONS * needs.transaction
    )
    share = max(share, 1)
    total = _solver_total(needs, chance, draws)
    task = windows.training + windows.seating + windows.longest_dispute
    # The part of a stake that a friend of the solver can't recover; less the submitter's, no party can.
    kept = WHOLE - DEMANDER_OF_SOLVER_STAKE
    tax = chance.tax(share * chance.shares)
    taxed = -(-tax * WHOLE // (kept - SUBMITTER_OF_SOLVER_STAKE)) + 2
    false_words, paid_words = _false_words(needs), WORDS * UNSERVED_OF_LOSS * SAYER_OF_BOND / WHOLE**2
    price = solver_stake = fee = verifier_stake = bond = 0
    costs = Costs(needs.training, segment, needs.transaction, needs.dispute)
    while True:
        held = price + fee + solver_stake
        costs = Costs(
            needs.training,
            segment,
            needs.transaction,
            needs.dispute,
            solver_capital=solver_stake * second * task,
            verifier_capital=verifier_stake * second * (windows.seating + windows.longest_dispute),
            dispute_delay=(held + verifier_stake) * second * windows.longest_dispute,
            seating_delay=held * second * windows.seating,
        )
        before = (price, solver_stake, fee, verifier_stake, bond)
        fee = max(fee, ceil(more * (verification + CLAIM_TRANSACTIONS * needs.transaction + costs.verifier_capital)), 1)
        price = max(price, ceil(more * needs.training + costs.solver_capital + needs.rejects_honest * total))
        idle = ceil(2 * BURN * costs.seating_delay) + 2
        # An auction may bring the price down to zero, so the stake has to deter alone.
        alone = max(total - price, total / more)
        # A friend that objects first wins its bond, up to a quarter of the stake; one that asks for data a sixteenth.
        risked = objection_bond(segment_price(price, needs.segments, fee, draws) + needs.dispute, 0, 0)
        against_objectors = min(alone + risked, alone * WHOLE / (WHOLE - MOST_OF_SOLVER_STAKE))
        deterring = ceil(max(alone * WHOLE / kept, against_objectors)) + 1
        # What the submitter keeps in its escrow if its friends say that it isn't served.
        kept_back = price + share_up(price, TREASURY_OF_PRICE) + fee + tax
        worded = max(ceil(false_words * kept_back) - price, ceil((paid_words * price + tax) / (1 - paid_words)) + 2)
        solver_stake = max(solver_stake, deterring, 2 * fee + 2, taxed, idle, worded)
        bond = max(
            bond, ceil(BURN * (needs.dispute + segment + costs.dispute_delay)), 2 * ceil(BURN * costs.dispute_delay), 1
        )
        stakes = Stakes(price, fee, solver_stake, verifier_stake, bond, share * chance.shares, needs.segments, draws)
        verifier_stake = max(verifier_stake, _verifier_stake(needs, chance, stakes, costs, share))
        bond = max(bond, -(-verifier_stake // 16))
        # A word's bond and shares don't end at the stakes.
        verifier_stake = max(verifier_stake, 2 * bond, ceil((price + solver_stake) * UNSERVED_OF_LOSS / WHOLE) + 1)
        if (price, solver_stake, fee, verifier_stake, bond) == before:
            break
        if max(price, solver_stake, verifier_stake) > MOST:
            raise ProtocolError("stakes grow without end: locking money costs more than it deters")
    stakes = Stakes(
        price, fee, solver_stake, verifier_stake, bond, share * chance.shares, needs.segments, draws, not needs.exact
    )
    threat = Threat(
        needs.cheat_gain,
        needs.least,
        needs.coalition,
        needs.seeds,
        needs.rejects_honest,
        saved_by_one_lie=needs.saved_by_one_lie,
        objectors=needs.objectors,
    )
    return Design(needs, chance, windows, Game(chance, stakes, costs, threat))


def _seat(needs: Needs) -> float:
    return float(1 - (1 - needs.coalition) ** needs.seeds)


def _false_words(needs: Needs) -> float:
    """Stake and price together, as a multiple of what two false words save a submitter with a coalition's tickets.

    The first is lost unless the coalition has the next seat, too; then both are paid.
    """
    seat = _seat(needs)
    alone = 1 - seat - seat * WORDS * SAYER_OF_BOND / WHOLE
    if alone <= 0:
        raise ProtocolError("the coalition decides whose word counts that a solver doesn't serve")
    return (1 + needs.margin) * seat * WHOLE / (UNSERVED_OF_LOSS * alone)


def _seen(needs: Needs, chance: JackpotRules, found: float) -> float:
    return float((1 - exp(-(1 - needs.coalition) * chance.watchers * found)) ** needs.seeds)


def _solver_total(needs: Needs, chance: JackpotRules, draws: int) -> float:
    """Price and stake together: the gain of the most tempting cheat over its probability of being drawn."""
    more, n = 1 + needs.margin, needs.segments
    seat, seen = _seat(needs), _seen(needs, chance, 1.0)
    shield = (1 - seat * seen) / (1 - seat)
    worst = 0.0
    # A jump saves much and shows; whoever wants to hide saves no more than what it fabricates.
    ways = [(1 / n, 0.0)]
    if needs.saved_by_one_lie > 1 / n:
        ways = [(needs.saved_by_one_lie, needs.objectors), *(ways if needs.objectors else [])]
    for saved, objected in ways:
        for cheated in temptations(n, needs.least, saved):
            drawn = float(detection_probability(n, cheated, draws)) ** needs.seeds / shield
            found = 1 - (1 - drawn) * (1 - objected)
            # A solver that is found out may serve friends only: nobody else can look, and two seats decide.
            hit = 1 - (1 - float(detection_probability(n, cheated, draws)) ** needs.seeds) * (1 - objected)
            found = min(found, hit * (1 - seat) ** WORDS)
            gain = (needs.cheat_gain if cheated >= needs.least else 0) + needs.training * min(1.0, cheated * saved)
            if found <= needs.rejects_honest:
                raise ProtocolError(f"honest work is rejected as often as a cheat in {cheated} segments is found")
            worst = max(worst, more * gain / (found - needs.rejects_honest))
    return worst


def _verifier_stake(needs: Needs, chance: JackpotRules, stakes: Stakes, costs: Costs, share: int) -> int:
    """Twice the loss that deters a verifier (a friend brings half back): the maximum of all conditions."""
    more, rate, fee = 1 + needs.margin, chance.rate / ONE, stakes.verifier_fee
    work = stakes.draws * costs.segment
    prize = stakes.price + stakes.solver_stake + needs.cheat_gain
    once, shielded, all_ = (_seen(needs, chance, f) for f in (1.0, 0.5, stakes.draws / (stakes.draws + 1)))

    def bought(found: float) -> float:
        average = (1 - needs.coalition) * chance.watchers * found
        return over_drawn(average, needs.seeds, lambda drawn: max(fee + prize - drawn * share, 0.0))

    delays = costs.seating_delay + costs.dispute_delay
    sent = CLAIM_TRANSACTIONS * needs.transaction
    losses = [
        # Lying for a bribe that also buys the drawn watchers: beside the planted error, or everywhere without work.
        (bought(0.5) - fee) / shielded,
        (bought(stakes.draws / (stakes.draws + 1)) + work - fee) / all_,
        (1 - once) / once * prize,
        # One guess beside the planted error, or nothing but guesses.
        (costs.segment - shielded * fee) / shielded,
        (work - all_ * fee) / all_,
        # Burning a seat for another draw of one's own task.
        needs.coalition * needs.seeds * chance.watchers * share * rate / (1 - rate),
        # Lying in one's own task to catch oneself, with as many tickets as are seen drawn: the contract's bound.
        needs.coalition * needs.seeds * chance.watchers * share,
        stakes.jackpot / more,
        # A buyer of the secret shows it.
        share,
        # Harm to others of burning a seat.
        BURN / more * (needs.dispute + costs.segment + delays),
        BURN / more * (costs.seating_delay + sent),
    ]
    return 2 * ceil(more * max(losses)) + 2
