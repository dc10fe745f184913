"""The search for what a coalition gains in the settlements of a plan of rounds (docs/spec/game.md, "A search").

Everybody else works, counts its work, and looks at all lines: a false one is demanded and void. Money is moved by
`settle_work`, and by the shares of a slash. What counts for the submitter is what the work of others is worth to it:
what it would pay for it.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import product

from lab.incentives.amounts import UNIT
from lab.incentives.best_strategy import GameMove, Solution, State, solve
from pol.incentives.payouts import objector_reward
from pol.incentives.work_shares import pay_of, settle_work

OWN, OTHERS = "own", "others"


@dataclass(frozen=True)
class SettlementRules:
    """Rules of settlements that were once other rules."""

    first_payment_fixes: bool = False
    """The first payment fixes the total, and what a void line would get returns to the submitter."""
    opens_together: bool = False
    """The coordinator opens settlements when it likes, all of them at once."""
    is_priced: bool = True
    """No unit is paid more than its part of the pay."""
    fall_returns: bool = False
    """Behind the fall of its coordinator nobody counts anything, and all pay returns to the submitter."""
    keeper_pays: int = 3
    """The stake of the coordinator, in pays of a settlement."""
    texts_are_unread: bool = False
    """What says nowhere which roster it is makes authors, and is no second roster."""
    answers_are_paid: bool = False
    """A worker is paid as soon as it has shown where a claim comes from."""
    gone_sign_on: bool = False
    """Nobody answers for a member that has left or was slashed."""


RULES = SettlementRules()
REVERTED: Mapping[str, SettlementRules] = {
    "the first payment fixes the total": SettlementRules(first_payment_fixes=True),
    "settlements open together": SettlementRules(opens_together=True),
    "a unit may be paid any price": SettlementRules(is_priced=False),
    "a coordinator's fall returns the pay": SettlementRules(fall_returns=True),
    "a coordinator stakes two pays": SettlementRules(keeper_pays=2),
    "a text of no kind makes authors": SettlementRules(texts_are_unread=True),
    "an answer is paid at once": SettlementRules(answers_are_paid=True),
    "who has gone signs on": SettlementRules(gone_sign_on=True),
}
"""Each rule as it was."""


@dataclass(frozen=True)
class StakedPlan:
    """Amounts in the smallest unit. In each settlement others count ``others`` units, and a coalition one claim."""

    pay: int = 10 * UNIT
    settlements: int = 10
    stake: int = 4 * UNIT
    others: int = 90
    claim: int = 10
    places: int = 1000
    """Claims that a false line can name: all of the plan's, for one key."""
    cost: int = 9 * UNIT // 100
    """Of the work for a unit."""

    @property
    def work(self) -> int:
        """Units that a settlement pays in full: those of all."""
        return self.others + self.claim


@dataclass(frozen=True)
class RoundsCoalition:
    """Who is in it; the friend shows a lie of another member before somebody else does."""

    submitter: bool
    coordinator: bool
    worker: bool
    friend: bool

    @property
    def members(self) -> str:
        """Its roles, for people."""
        return ", ".join(name for name, is_in in vars(self).items() if is_in)


@dataclass(frozen=True)
class SettlementMoves:
    """Moves of one coalition in each settlement of a plan."""

    plan: StakedPlan
    who: RoundsCoalition
    rules: SettlementRules
    is_over: bool
    """Others had done the work of all settlements before the first one; else they work from one to the next."""

    def moves(self, state: State) -> list[GameMove]:
        """The moves where so many settlements are ahead, by whether its worker has its stake; duty is the first."""
        assert isinstance(state, tuple)
        ahead, works = state
        plan, who = self.plan, self.who
        after = ((1.0, (ahead - 1, works)),) if ahead > 1 else ()
        own = {OWN: plan.claim} if works else {}
        duty = self._paid({OTHERS: plan.others} | own) - works * plan.claim * plan.cost
        found = [GameMove("count its work", duty, after)]
        if works:
            found.append(GameMove("count no work", self._paid({OTHERS: plan.others}), after))
            out = ((1.0, (ahead - 1, False)),) if ahead > 1 else ()
            found.append(GameMove("count what isn't its own", self._false_line() - self._lost(plan.stake), out))
            # The source of its claim is false, and nobody has seen it before.
            paid, lost = (own, 0) if self.rules.answers_are_paid else ({}, self._lost(plan.stake))
            found.append(GameMove("show a false source at last", self._paid({OTHERS: plan.others} | paid) - lost, out))
        if works and who.coordinator:
            fall = self._lost(self.rules.keeper_pays * plan.pay)
            for name, claims, is_free in (
                ("count copies by a text that is no roster", plan.others, self.rules.texts_are_unread),
                ("go on from what a member that has gone has made up", plan.claim, self.rules.gone_sign_on),
            ):
                counted = self._paid({OTHERS: plan.others, OWN: claims})
                found.append(GameMove(name, counted - (0 if is_free else fall), after if is_free else ()))
        if works and who.coordinator and not self.is_over:
            later = self._paid({OWN: plan.claim}) - plan.claim * plan.cost
            found.append(GameMove("stop the rounds, count a claim at a time", duty + (ahead - 1) * later))
        if who.coordinator:
            found += self._falls(ahead, works)
        return found

    def _paid(self, units: Mapping[str, int]) -> float:
        """What the coalition gets of a settlement in which these units of true work are counted."""
        plan, who = self.plan, self.who
        settled = settle_work(plan.pay, plan.work if self.rules.is_priced else 1, units)
        worth = pay_of(plan.pay, min(sum(units.values()), plan.work), plan.work)
        return float(who.worker * settled.paid.get(OWN, 0) + who.submitter * (settled.returned + worth - plan.pay))

    def _false_line(self) -> float:
        plan = self.plan
        if not self.rules.first_payment_fixes:
            return self._paid({OTHERS: plan.others})
        # Somebody settles a line of others as soon as that is possible.
        false = plan.places * plan.claim
        taken = pay_of(plan.pay, plan.others, plan.work) - pay_of(plan.pay, plan.others, plan.others + false)
        return self._paid({OTHERS: plan.others}) + self.who.submitter * taken

    def _falls(self, ahead: int, works: bool) -> Iterator[GameMove]:
        """The coordinator lets itself be slashed in the first of the settlements that are ahead."""
        plan, who = self.plan, self.who
        worth, lost = pay_of(plan.pay, plan.others, plan.work), self._lost(self.rules.keeper_pays * plan.pay)
        done = ahead if self.is_over else 1
        if self.rules.fall_returns:
            yield GameMove("let the coordinator fall", float(who.submitter * done * worth - lost))
            return
        open_ = ahead if self.rules.opens_together else min(2, ahead)
        # What the treasury gets of settlements that are never opened is lost to the submitter.
        burnt = who.submitter * (done * worth - ahead * plan.pay)
        paid = sum(self._paid({OTHERS: plan.others}) for _ in range(min(done, open_)))
        kept = who.submitter * (min(done, open_) * (worth - plan.pay))
        yield GameMove("let the coordinator fall", float(burnt - kept + paid - lost))
        if works:
            # The line of others is worth next to nothing beside copies that the coordinator still signs for.
            yield GameMove("let it fall, and sign for a friend", float(burnt + open_ * plan.pay - lost))

    def _lost(self, stake: int) -> int:
        """Of a stake, less what a friend gets that shows the lie."""
        return stake - self.who.friend * objector_reward(stake, 0, 0)


@dataclass(frozen=True)
class RoundsAttack:
    """The best that a coalition can do in a plan."""

    coalition: RoundsCoalition
    solution: Solution
    excess: int
    """What it brings above duty, in the smallest unit."""


def attacks(rules: SettlementRules = RULES, plan: StakedPlan | None = None) -> Iterator[RoundsAttack]:
    """The best strategy of each coalition, where others work from settlement to settlement, and before all of them."""
    plan = plan or StakedPlan()
    for roles in product((True, False), repeat=4):
        who = RoundsCoalition(*roles)
        for is_over in (False, True):
            tree = SettlementMoves(plan, who, rules, is_over)
            solution = solve((plan.settlements, who.worker), tree.moves)
            excess = solution.best - solution.duty
            scale = plan.pay * plan.settlements
            yield RoundsAttack(who, solution, 0 if abs(excess) <= 1e-9 * scale else int(excess))


def worst_of_rounds(rules: SettlementRules = RULES) -> RoundsAttack:
    """What brings a coalition most: for few and for many settlements, and for stakes from a small to a large part."""
    plans = (
        replace(StakedPlan(), settlements=settlements, stake=stake)
        for settlements, stake in product((1, 2, 10), (UNIT // 10, 4 * UNIT, 30 * UNIT))
    )
    return max((attack for plan in plans for attack in attacks(rules, plan)), key=lambda attack: attack.excess)


def reverted_of_rounds() -> dict[str, RoundsAttack]:
    """For each rule that is put back as it was, an attack that it admits."""
    found = {name: worst_of_rounds(rules) for name, rules in REVERTED.items()}
    return {name: attack for name, attack in found.items() if attack.excess > 0}
