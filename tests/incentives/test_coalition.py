"""The search: it finds each exploit of a rule as it was by itself, and nothing on the rules as decided."""

from dataclasses import replace
from itertools import product

import pytest

from lab.incentives.best_strategy import GameMove, solve
from lab.incentives.coalition import best, coalitions
from lab.incentives.coalition_moves import SEEN, Coalition, CoalitionMoves, Log
from lab.incentives.coalition_search import MOST_SHARE, SHARES, reverted_found, worst
from lab.incentives.game_inputs import Costs, Stakes, Threat
from lab.incentives.parameter_design import design
from lab.incentives.payoffs import Game
from lab.incentives.rule_variants import REVERTED, RULES, RuleVariant
from lab.incentives.task_needs import EXAMPLE as NEEDS
from pol.errors import ProtocolError
from pol.incentives import payouts
from pol.incentives.forced_errors import LARGEST_RATE, LEAST_RATE
from pol.incentives.jackpot import JackpotRules
from pol.incentives.payouts import look_fee

pytestmark = pytest.mark.rules

UNIT = 10**18
GAME = design(NEEDS).game
FREE_LAPSE, ONLY_REPLAY, UNPRICED, AVERAGE, *WORDS = REVERTED.values()


def own_task(watchers: int = 7, rate: int = LARGEST_RATE, segment: int = 0) -> Game:
    """A task of the coalition's own for which nobody else takes the seat."""
    chance, share = JackpotRules(watchers, 2 * watchers, rate), 100 * UNIT
    reserved = share * chance.shares
    solver = -(-chance.tax(reserved) * 10_000 // 4_375) + 2
    stakes = Stakes(1, 0, solver, 2 * share * watchers, share, reserved, 1, 1)
    return Game(chance, stakes, Costs(0, segment, UNIT // 1000, 0), Threat(0, 1, 0.0))


@pytest.mark.long
@pytest.mark.parametrize("share", SHARES)
@pytest.mark.parametrize("objectors", [0.0, 0.5, 0.99])
def test_nothing_pays_on_the_rules_as_decided(share: float, objectors: float) -> None:
    """Whether outsiders look at whole logs, and object to jumps in them, hardly ever or nearly always."""
    assert worst(replace(NEEDS, objectors=objectors), share).found.excess <= 0


def test_a_solver_about_to_lose_lets_a_friend_object() -> None:
    """The search finds it, and the stakes of a design are sized for it."""
    coalition = Coalition(False, True, True, 0.0)
    game = design(replace(NEEDS, objectors=0.99)).game
    tree = CoalitionMoves(game, coalition, RULES, 0, False)
    settle, objecting = (move.gain for move in tree.moves(("stands", Log(SEEN), False, False))[:2])
    assert tree.reward > 0
    assert objecting - settle == pytest.approx(tree.reward)
    stakes = replace(game.stakes, solver_stake=game.stakes.solver_stake // 3)
    assert best(game, coalition).excess == 0
    assert best(replace(game, stakes=stakes), coalition).excess > 0


def test_a_solver_that_is_drawn_serves_friends_only() -> None:
    """Nobody else can look then, so what deters is that two outsiders sit."""
    coalition = Coalition(False, True, False, 0.25)
    # What theorem 5 asks for is less than two thirds of what theorem 5b does.
    before = replace(GAME.stakes, solver_stake=2 * GAME.stakes.solver_stake // 3)
    found = best(replace(GAME, stakes=before), coalition)
    assert found.excess > 0
    assert any(line.startswith("theirs (hit, served to friends only): serve friends only") for line in found.lines)
    assert best(GAME, coalition).excess == 0


def test_rules_of_words_keep_coalitions_from_what_they_are_for() -> None:
    """Each is put back, and found where it matters: with tickets alone, or with the solver or the submitter."""
    none, one, half, paid, free = WORDS
    solver, submitter = Coalition(False, True, False, 0.25), Coalition(True, False, False, MOST_SHARE)
    for rules, coalition, move in (
        (none, solver, "serve friends only"),
        (one, submitter, "say that it isn't served"),
        (half, solver, "serve friends only"),
        (paid, solver, "serve friends only"),
        (free, solver, "serve friends only"),
    ):
        found = best(GAME, coalition, rules)
        assert found.excess > 0
        assert any(line.endswith(move) for line in found.lines)
    assert best(GAME, solver).excess == 0


def test_two_false_words_are_dear_enough_up_to_half_of_the_tickets() -> None:
    with pytest.raises(ProtocolError, match="decides whose word counts"):
        design(replace(NEEDS, coalition=0.54, most_stake=10**6 * UNIT))
    coalition = Coalition(True, False, False, MOST_SHARE)
    game = design(replace(NEEDS, coalition=MOST_SHARE, most_stake=10**6 * UNIT)).game
    assert best(game, coalition).excess == 0
    cheap = replace(game, stakes=replace(game.stakes, solver_stake=game.stakes.solver_stake // 5))
    assert any("say that it isn't served" in line for line in best(cheap, coalition).lines)


@pytest.mark.long
def test_each_rule_as_it_was_has_an_exploit_that_the_search_finds() -> None:
    found = reverted_found(NEEDS)
    assert set(found) == set(REVERTED)
    assert found["second looks are unpriced"].objective == "damage"
    assert all(attack.found.lines for attack in found.values())


def test_a_free_lapse_waits_for_a_planted_error() -> None:
    """What 40 tasks brought at the contracts: q m j less the tax, as each task ends with an error of its own."""
    game = own_task()
    assert game.chance is not None
    found = best(game, Coalition(True, True, True, MOST_SHARE), FREE_LAPSE)
    catch = game.share - 2 * game.costs.transaction
    expected = MOST_SHARE * game.chance.watchers * catch - game.tax - payouts.share_up(1, payouts.TREASURY_OF_PRICE)
    assert found.excess == pytest.approx(expected, rel=1e-3)
    assert any("let the seat lapse, no round recorded" in line for line in found.lines)
    # Below five quarters of the rate the tax is more than what one's own tickets catch.
    assert best(game, Coalition(True, True, True, 0.3), FREE_LAPSE).excess == 0
    assert best(game, Coalition(True, True, True, MOST_SHARE), RULES).excess == 0


def test_a_lie_that_no_commitment_refutes_pays_a_submitter_with_tickets() -> None:
    coalition = Coalition(True, False, False, 0.25)
    found = best(GAME, coalition, ONLY_REPLAY)
    gained = payouts.rejected(GAME.deal).submitter - payouts.accepted(GAME.deal).submitter
    assert found.excess == pytest.approx(0.25 * (gained + GAME.verification), rel=0.1)
    assert any("lie in its entry" in line for line in found.lines)
    assert best(GAME, coalition).excess == 0


def test_unpriced_looks_cost_the_verifier_their_reruns() -> None:
    coalition = Coalition(False, True, False, 0.0)
    found = best(GAME, coalition, UNPRICED, looks=8, damage=True)
    work = GAME.verification * 9 + 3 * GAME.costs.transaction
    assert found.excess == pytest.approx(work - GAME.stakes.verifier_fee, rel=1e-6)
    assert best(GAME, coalition, UNPRICED, looks=8).excess == 0
    assert best(GAME, coalition, RULES, looks=8, damage=True).excess == 0


@pytest.mark.parametrize(("fee", "looks", "draws"), list(product((7, UNIT + 1), (1, 8, 64), (1, 22))))
def test_a_look_is_paid_as_its_reruns_are_within_the_fee(fee: int, looks: int, draws: int) -> None:
    assert look_fee(fee, looks, draws) * draws >= fee * looks > (look_fee(fee, looks, draws) - 1) * draws


def test_a_free_look_at_who_watches_pays_if_a_stake_covers_average_catches() -> None:
    """Theorem 4's gap: lie, see which tickets are drawn, then decide whether to catch oneself."""
    game = own_task(watchers=7, rate=LEAST_RATE, segment=100 * UNIT)
    assert not game.awake
    coalition = Coalition(True, True, True, MOST_SHARE)
    found = best(game, coalition)
    assert found.excess > 0
    assert any("catch itself" in line for line in found.lines)
    assert game.chance is not None
    covered = RULES.verifier_stake(game.chance, game.stakes.jackpot)
    assert best(replace(game, stakes=replace(game.stakes, verifier_stake=covered)), coalition).excess == 0


def test_every_subset_of_roles_is_tried() -> None:
    tried = {(c.submitter, c.solver, c.friend, c.share > 0) for c in coalitions(0.2)}
    assert len(tried) == 15
    with pytest.raises(ProtocolError, match="share"):
        Coalition(True, True, True, 1.0)


def test_a_default_costs_more_than_the_tax() -> None:
    paid = payouts.seat_defaulted(GAME.deal)
    assert paid.total == GAME.deal.verifier_stake
    assert paid.fund >= GAME.tax
    assert paid.challenger == payouts.share_down(GAME.deal.verifier_stake, 625)


def test_the_best_strategy_of_a_game_that_comes_back() -> None:
    """A coin is tossed until it suits, for a fee that is worth it or isn't."""

    def moves(fee: float) -> dict[object, list[GameMove]]:
        toss = GameMove("look", 0.0, ((0.5, "heads"), (0.5, "tails")))
        again = GameMove("again", -fee, ((1.0, "coin"),))
        return {"coin": [toss], "heads": [GameMove("take", 1.0), again], "tails": [GameMove("take", 0.0), again]}

    for fee, value in ((0.0, 1.0), (0.25, 0.75), (0.5, 0.5), (0.75, 0.5)):
        assert solve("coin", moves(fee).__getitem__).best == pytest.approx(value)
    with pytest.raises(ProtocolError, match="never ends"):
        solve("round", lambda _: [GameMove("end", 0.0), GameMove("on", 1.0, ((1.0, "round"),))])
    with pytest.raises(ProtocolError, match="has no moves"):
        solve("nowhere", lambda _: [])


def test_rules_are_data() -> None:
    assert RuleVariant() == RULES
    assert all(rules != RULES for rules in REVERTED.values())
