"""What a bid is worth in the auction: true bids, shaded ones, and a submitter's own (docs/spec/game.md, "Bids").

Paid by the code that mirrors the contract (`auction.award`).
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from lab.incentives.auction_rules import AuctionTerms, award, forfeited, score
from pol.incentives import payouts
from pol.incentives.auction import Bid
from pol.incentives.game.payoffs import Choice


def bids(terms: AuctionTerms, cost: int, seconds: int, others: Sequence[Bid], prices: Iterable[int]) -> Choice:
    """A solver that trains for ``cost`` in ``seconds``: its true bid against all prices, two bids, and none.

    ``others`` are all other bids of the round; nobody knows them before, and here every deviation does.
    """
    bidder = b"\x01" * 20

    def worth(*own: int) -> float:
        made = [Bid(bidder, price, seconds) for price in own]
        admitted = [bid for bid in (*made, *others) if score(bid, terms.second_price) <= terms.maximum]
        won = award(terms, admitted)
        return float(won.price - cost) if won is not None and won.bidder == bidder else 0.0

    offered = sorted({*prices} - {cost})
    deviations = {f"bid {price}": worth(price) for price in offered}
    deviations |= {f"bid {price} too": worth(cost, price) for price in offered}
    deviations["hide the bid"] = -float(forfeited(terms.solver_stake))
    return Choice("solver", "bids", worth(cost), deviations)


def shills(terms: AuctionTerms, others: Sequence[Bid], prices: Iterable[int]) -> Choice:
    """A submitter that bids under another name, beside naming that price as its maximum: what is left of the value.

    If its bid wins nobody trains, and the stake is gone but for the submitter's share. The value is the maximum of the
    terms; the honest choice is the best maximum below it.
    """
    shill, seconds = b"\x02" * 20, min(bid.seconds for bid in others)
    lost = terms.solver_stake - payouts.share_down(terms.solver_stake, payouts.SUBMITTER_OF_SOLVER_STAKE)

    def left(made: Sequence[Bid], maximum: int) -> float:
        admitted = [bid for bid in made if score(bid, terms.second_price) <= maximum]
        won = award(replace(terms, maximum=maximum), admitted)
        if won is None:
            return 0.0
        return float(terms.maximum - won.price if won.bidder != shill else -lost)

    honest, shilled = 0.0, {}
    for price in sorted({*prices, terms.maximum}):
        bid = Bid(shill, max(0, price - terms.second_price * seconds), seconds)
        # Its seconds alone can cost more than the price: the maximum to compare with is the bid's own score.
        honest = max(honest, left(others, price), left(others, score(bid, terms.second_price)))
        shilled[f"bid {price}"] = left([*others, bid], terms.maximum)
    return Choice("submitter", "bids against its solvers", honest, shilled)
