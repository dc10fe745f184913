"""Payouts: integer mirror of `contracts/market/Split.sol` and of the desks that use it.

Every function is one row, or two similar ones, of the table "Who pays whom" (docs/spec/market.md): it takes a `Deal`
and returns a `Payout`, in the smallest unit of the asset. A payout sums to the released amount. Shares round down and
the jackpot's fund gets the rest, so a slash never goes entirely to the party that proved it.
"""

from __future__ import annotations

from dataclasses import astuple, dataclass, replace

from pol.errors import ProtocolError

WHOLE = 10_000
"""Basis points in a whole."""
SUBMITTER_OF_SOLVER_STAKE = 5_000
"""Part of a lost solver's stake that goes to the submitter."""
DEMANDER_OF_SOLVER_STAKE = 625
"""Part of the stake of a solver that withholds data that goes to the demander."""
OBJECTOR_OF_SOLVER_STAKE, MOST_OF_SOLVER_STAKE = 625, 2_500
"""Least and greatest part of the stake of a solver that lost an objection that goes to the objector."""
SUBMITTER_OF_VERIFIER_STAKE = 5_000
"""Part of the stake of a verifier that misses its deadline that goes to the submitter."""
CLAIMER_OF_VERIFIER_STAKE = 625
"""Part of the same stake that goes to the claimer of the default, which brought the beacon rounds."""
CHALLENGER_OF_VERIFIER_STAKE = 5_000
"""Part of the stake of a profiler or verifier that lost a dispute or leaked its secret that goes to the prover."""
VERIFIER_OF_BOND = 5_000
"""Part of the bond of a challenger that lost that goes to the challenged party."""
WINNER_OF_BOND = 5_000
"""Part of the bond of a party that lost a dispute about an objection that goes to the other side."""
UNSERVED_OF_LOSS = 7_000
"""What a verifier puts at risk by its word that it isn't served: part of the solver's stake and price together."""
SAYER_OF_BOND = 4_400
"""Part of that bond that each of two sayers gets out of the solver's stake."""
WORDS = 2
"""Words of different accounts that end a training: what `Settlement._unserved` holds."""
TREASURY_OF_PRICE = 50
"""Part of the solver's price that the treasury gets on top of it."""
WORK = 1 << 32
"""Work units that the unit price of the terms pays."""
MAX_AMOUNT = 1 << 112
"""No amount of the terms is above it."""
MAX_DOUBLINGS = 3
"""Number of challenges that double the bond: from the smallest admitted bond to the largest."""
MAX_OBJECTION_DOUBLINGS = 112
"""Number of objections that may double the bond: one unit becomes more than any stake."""


@dataclass(frozen=True)
class Deal:
    """The amounts of one task. Raises ProtocolError: amounts that the market does not admit."""

    maximum: int
    """Highest price of the solver, see `maximum_price`."""
    price: int
    """Price agreed with the solver."""
    verifier_fee: int
    """Fee of the verifier, and also of the profiler."""
    solver_stake: int
    verifier_stake: int
    bond: int
    """Bond of the challenger, see `bond_after`."""
    tax: int = 0
    """Tax for the fund, see `JackpotRules.tax`."""
    share: int = 0
    """One watch reward, see `JackpotRules.share`."""
    profiled: bool = True
    """Whether the submitter also pays a profiler; not in exact mode."""
    looked: int = 0
    """Fee of the solver for the second looks of the final verdict, see `look_fee`."""
    objected: int = 0
    """Reward of an objector that has shown a false segment, see `objector_reward`."""

    def __post_init__(self) -> None:
        for name, amount in vars(self).items():
            if not 0 <= amount <= MAX_AMOUNT:
                raise ProtocolError(f"{name} is not an amount up to 2^112")
        if self.price > self.maximum:
            raise ProtocolError(f"the price exceeds the maximum of {self.maximum}; lower the price")
        if self.looked >= self.solver_stake > 0:
            raise ProtocolError("the solver's stake does not cover the second looks; raise the stake")
        if share_down(self.solver_stake - self.looked, SUBMITTER_OF_SOLVER_STAKE) < self.verifier_fee:
            raise ProtocolError(
                "the submitter's share of the solver's stake does not cover the verifier's fee; raise the stake"
            )
        if data_withheld(self, stood=True).fund < self.tax:
            raise ProtocolError(
                "what withheld data leave of the solver's stake does not cover the tax; raise the stake"
            )

    @property
    def word(self) -> int:
        """Bond of a verifier's word that it isn't served."""
        return unserved_bond(self.price, self.solver_stake, self.verifier_stake)

    @property
    def escrow(self) -> int:
        """Escrow of the submitter: the maximum price with the treasury's part, the fees, and the tax."""
        return self.bidding_escrow + (self.verifier_fee if self.profiled else 0)

    @property
    def bidding_escrow(self) -> int:
        """The escrow when solvers bid: the profiler has been paid."""
        return self.maximum + share_up(self.maximum, TREASURY_OF_PRICE) + self.verifier_fee + self.tax


@dataclass(frozen=True)
class Payout:
    """Credits of each party when an amount is released."""

    submitter: int = 0
    solver: int = 0
    holder: int = 0
    """The profiler or the verifier in the seat."""
    challenger: int = 0
    """The challenger, or another party that proved or found something."""
    fund: int = 0
    """The jackpot's fund."""
    treasury: int = 0

    @property
    def total(self) -> int:
        """Sum over all parties."""
        return sum(astuple(self))


def share_down(amount: int, points: int) -> int:
    """`amount * points / 10000`, rounded down."""
    return amount * points // WHOLE


def share_up(amount: int, points: int) -> int:
    """`amount * points / 10000`, rounded up."""
    return -(-amount * points // WHOLE)


def maximum_price(work_units: int, unit_price: int) -> int:
    """Highest price of the solver: work times unit price, rounded up."""
    return -(-work_units * unit_price // WORK)


def look_fee(fee: int, looks: int, draws: int) -> int:
    """Cost to the solver of a second look of ``looks`` reruns; ``fee`` pays the replay of ``draws`` segments."""
    return -(-fee * looks // draws) if looks else 0


def bond_after(bond: int, verifier_stake: int, earlier: int) -> int:
    """The bond of a challenger after ``earlier`` challenges of the same verdict or profile.

    Each doubles the bond of the terms, up to what a right challenger wins.
    """
    return min(bond << min(earlier, MAX_DOUBLINGS), share_down(verifier_stake, CHALLENGER_OF_VERIFIER_STAKE))


def segment_price(price: int, segments: int, fee: int, draws: int) -> int:
    """Pay for one segment: by the price of the training, or by the fee for verifying it, whichever is more."""
    return max(-(-price // segments), look_fee(fee, 1, draws))


def slashable(stake: int, fee: int, looks: int, draws: int) -> int:
    """The rest of a solver's stake if a verdict has a second look at every drawn segment."""
    return stake - draws * look_fee(fee, looks, draws)


def objector_reward(stake: int, bond: int, tax: int) -> int:
    """Gain of an objector that is right: its bond, within two shares of the `slashable` stake.

    The ``tax`` is left to the fund beside the submitter's share, as where data are withheld.
    """
    rest = stake - share_down(stake, SUBMITTER_OF_SOLVER_STAKE)
    most = min(share_down(stake, MOST_OF_SOLVER_STAKE), max(rest - tax, 0), bond)
    return max(most, share_down(stake, OBJECTOR_OF_SOLVER_STAKE))


def unserved_bond(price: int, solver_stake: int, verifier_stake: int) -> int:
    """What a word that the solver doesn't serve puts at risk."""
    return min(share_down(price + solver_stake, UNSERVED_OF_LOSS), verifier_stake)


def objection_bond(defense: int, stake: int, earlier: int) -> int:
    """The bond of an objector after ``earlier`` objections to the same proof.

    It is twice the cost of the ``defense``, and each objection doubles it, up to the least gain of a right objector or
    to the first bond. ``stake``: as in `objector_reward`.
    """
    first = 2 * defense
    least = share_down(stake, OBJECTOR_OF_SOLVER_STAKE)
    return min(first << min(earlier, MAX_OBJECTION_DOUBLINGS), max(first, least))


def profile_concluded(deal: Deal) -> Payout:
    """The profile stands: releases a fee of the escrow and the profiler's stake."""
    return Payout(holder=deal.verifier_fee + deal.verifier_stake)


def accepted(deal: Deal, *, contradicted: bool = False) -> Payout:
    """The verdict accepts and stands: releases what is left of the escrow and both stakes.

    ``contradicted``: somebody had said that it isn't served. The solver pays for the other draw of the seat.
    """
    treasury, drawn = share_up(deal.price, TREASURY_OF_PRICE), deal.verifier_fee if contradicted else 0
    return Payout(
        submitter=deal.bidding_escrow - deal.price - treasury - deal.verifier_fee - deal.tax,
        solver=deal.price + deal.solver_stake - deal.looked - drawn,
        holder=deal.verifier_fee + deal.looked + deal.verifier_stake,
        fund=deal.tax + drawn,
        treasury=treasury,
    )


def rejected(deal: Deal) -> Payout:
    """The verdict rejects and stands, or the proof has fallen by an objection: releases what is left of the escrow and
    both stakes; the solver loses its own.
    """
    slashed = deal.solver_stake - deal.looked
    share = share_down(slashed, SUBMITTER_OF_SOLVER_STAKE)
    return Payout(
        submitter=deal.bidding_escrow - deal.verifier_fee - deal.tax + share,
        holder=deal.verifier_fee + deal.looked + deal.verifier_stake,
        fund=deal.tax + slashed - share - deal.objected,
    )


def rejected_though_repeated(deal: Deal) -> Payout:
    """As `rejected`, but every replay ends where the solver did: the fault is the submitter's, which gains nothing."""
    paid = rejected(deal)
    share = share_down(deal.solver_stake - deal.looked, SUBMITTER_OF_SOLVER_STAKE)
    return replace(paid, submitter=paid.submitter - share, fund=paid.fund + share)


def challenger_right(deal: Deal) -> Payout:
    """The verdict or the profile falls in a dispute: releases the bond and the stake of the challenged party."""
    proved = _proved(deal)
    return Payout(challenger=deal.bond + proved.challenger, fund=proved.fund)


def challenger_wrong(deal: Deal) -> Payout:
    """The challenged verdict or profile stands: releases the bond."""
    share = share_down(deal.bond, VERIFIER_OF_BOND)
    return Payout(holder=share, fund=deal.bond - share)


def challenge_moot(deal: Deal) -> Payout:
    """The challenged verdict or profile has fallen otherwise: releases the bond."""
    return Payout(challenger=deal.bond)


def objector_right(deal: Deal) -> Payout:
    """A segment of the solver's log is false: releases the bond, and the objector's reward of the solver's stake."""
    return Payout(challenger=deal.bond + deal.objected)


def objector_wrong(deal: Deal) -> Payout:
    """The segment stands, or the contest of a counterclaim falls: releases the loser's bond; the holder has won."""
    share = share_down(deal.bond, WINNER_OF_BOND)
    return Payout(holder=share, fund=deal.bond - share)


def counterclaim_wrong(deal: Deal, contest: int) -> Payout:
    """A counterclaim falls: releases its bond and that of the ``contest``. Whoever contested, it pays the solver."""
    share = share_down(deal.bond, WINNER_OF_BOND)
    return Payout(solver=share, challenger=contest, fund=deal.bond - share)


def profile_convicted(deal: Deal) -> Payout:
    """The profile contradicts itself: releases the profiler's stake."""
    return _proved(deal)


def error_found(deal: Deal) -> Payout:
    """A watcher's commitment opens to the truth: releases one share of the jackpot."""
    return Payout(challenger=deal.share)


def secret_withheld(deal: Deal) -> Payout:
    """The secret wasn't disclosed, or the duty not done: releases the verifier's stake; no party gets any of it."""
    return Payout(fund=deal.verifier_stake)


def secret_leaked(deal: Deal) -> Payout:
    """Somebody has shown the secret: releases the verifier's stake."""
    return _proved(deal)


def solver_defaulted(deal: Deal) -> Payout:
    """No learning proof in time: releases the solver's stake; an auction begins anew with the same escrow."""
    share = share_down(deal.solver_stake, SUBMITTER_OF_SOLVER_STAKE)
    return Payout(submitter=share, fund=deal.solver_stake - share)


def data_withheld(deal: Deal, *, stood: bool, said: bool = False) -> Payout:
    """The solver withholds committed data: releases its stake and that of a seated verifier.

    ``stood``: a verdict was posted and stood, so its verifier is paid. An auction begins anew with the same escrow.
    ``said``: the challenger has said before that it isn't served, and has the bond of its word back, too.
    """
    fee, looked = (deal.verifier_fee, deal.looked) if stood else (0, 0)
    slashed = deal.solver_stake - looked
    share = share_down(slashed, SUBMITTER_OF_SOLVER_STAKE) - fee
    # An objector that had shown a false segment has had this share; who has said so has its own.
    bounty = 0 if deal.objected else share_down(slashed, DEMANDER_OF_SOLVER_STAKE)
    left = slashed - fee - deal.objected
    if said:
        bounty = _sayer_share(deal, left)
        share = max(0, min(share, left - bounty - 2 * deal.tax))
    return Payout(
        submitter=share,
        holder=fee + looked + deal.verifier_stake,
        challenger=bounty + (deal.word if said else 0),
        fund=left - bounty - share,
    )


def not_served(deal: Deal, *, withheld: bool = False) -> Payout:
    """The second word that the solver doesn't serve: releases its stake, the sayer's, and the bond of the first.

    The first is the ``challenger``. An auction begins anew with the same escrow. The submitter gains only if the log
    has fallen, or if the solver has ``withheld`` data, too.
    """
    left = deal.solver_stake - deal.objected
    sayer = _sayer_share(deal, left)
    left -= 2 * sayer
    most = share_down(deal.solver_stake, SUBMITTER_OF_SOLVER_STAKE) if deal.objected or withheld else 0
    share = max(0, min(most, left - 3 * deal.tax))
    return Payout(submitter=share, holder=deal.verifier_stake + sayer, challenger=deal.word + sayer, fund=left - share)


def word_contradicted(deal: Deal) -> Payout:
    """A verdict stood after somebody had said that it isn't served: releases the bond of that word."""
    return Payout(fund=deal.word)


def seat_defaulted(deal: Deal) -> Payout:
    """No verdict in time: releases the verifier's stake."""
    share = share_down(deal.verifier_stake, SUBMITTER_OF_VERIFIER_STAKE)
    bounty = share_down(deal.verifier_stake, CLAIMER_OF_VERIFIER_STAKE)
    return Payout(submitter=share, challenger=bounty, fund=deal.verifier_stake - bounty - share)


def profiler_defaulted(deal: Deal) -> Payout:
    """No profile in time: releases the profiler's stake. The terms may admit none, so their submitter gets nothing."""
    return Payout(fund=deal.verifier_stake)


def abandoned(deal: Deal, *, decided: bool) -> Payout:
    """The beacon is silent for too long after the proof: releases what is left of the escrow and both stakes.

    ``decided``: a verifier sits, so the tax of its seating is paid. A solver whose proof has fallen loses its stake.
    """
    tax = deal.tax if decided else 0
    paid = Payout(
        submitter=deal.bidding_escrow - tax,
        solver=deal.solver_stake,
        holder=deal.verifier_stake if decided else 0,
        fund=tax,
    )
    if not deal.objected:
        return paid
    share = share_down(deal.solver_stake, SUBMITTER_OF_SOLVER_STAKE)
    rest = deal.solver_stake - share - deal.objected
    return replace(paid, submitter=paid.submitter + share, solver=0, fund=tax + rest)


def cancelled_unprofiled(deal: Deal, *, seated: bool) -> Payout:
    """The submitter withdraws a task that has no profile yet: releases the escrow and a seated profiler's stake."""
    return Payout(submitter=deal.escrow, holder=deal.verifier_stake if seated else 0)


def cancelled_bidding(deal: Deal) -> Payout:
    """The submitter withdraws a task that nobody has bid for: releases what is left of the escrow."""
    return Payout(submitter=deal.bidding_escrow)


def _proved(deal: Deal) -> Payout:
    """A stake is split between the prover and the fund."""
    share = share_down(deal.verifier_stake, CHALLENGER_OF_VERIFIER_STAKE)
    return Payout(challenger=share, fund=deal.verifier_stake - share)


def _sayer_share(deal: Deal, left: int) -> int:
    """What each sayer gets of what is ``left`` of the solver's stake beside the fund's tax.

    The submitter leaves another tax for each word, as it draws a verifier's duty anew.
    """
    return min(share_down(deal.word, SAYER_OF_BOND), (left - deal.tax) // 2)
