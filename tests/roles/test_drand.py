"""A task of the digits whose segment is drawn by a published round of drand: the verifier fetches and submits it."""

from pathlib import Path
from typing import Any

import pytest
from anvil_node import anvil_node
from drand_rounds import ROUNDS
from relay import relay
from town import Town, until_proof
from web3.types import RPCEndpoint, TxReceipt

from pol.chain.beacon import DRAND_DELAY, BeaconKind
from pol.chain.connection import Connection
from pol.chain.market import TaskMarket
from pol.chain.relays import Relays
from pol.errors import OperationalError
from pol.training import digits
from pol.verification.beacon import QUICKNET
from pol.verification.sampling import draw
from pol.verification.verdict import Outcome

PUBLISHED = next(published for published in ROUNDS["quicknet"] if published.number == 30662990)
COMMITTED = QUICKNET.time_of(PUBLISHED.number) - DRAND_DELAY - 1


@pytest.mark.slow
def test_a_verifier_brings_the_round_of_the_commitment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    commit = TaskMarket.commit_proof

    def punctual(market: TaskMarket, *arguments: Any) -> TxReceipt:
        """The solver commits in the second that the round is bound to; the chain's clock is the only thing arranged."""
        market.connection.web3.provider.make_request(RPCEndpoint("evm_setNextBlockTimestamp"), [COMMITTED])
        return commit(market, *arguments)

    monkeypatch.setattr(TaskMarket, "commit_proof", punctual)
    with anvil_node("--timestamp", str(COMMITTED - 6 * 3600)) as url, relay() as relay_url:
        town = Town(tmp_path, connection=Connection.to(url), beacon_kind=BeaconKind.DRAND)
        task_id, _, verifier, _ = until_proof(town)
        assert verifier.market.task(task_id).round == PUBLISHED.number
        with pytest.raises(OperationalError, match="isn't on chain yet: name relays"):
            verifier.replay(task_id)
        verifier.rounds = Relays([relay_url]).round
        verdicts = verifier.verify(task_id)
        assert verifier.market.task(task_id).seed == PUBLISHED.seed
        drawn = draw(PUBLISHED.seed, digits.STEPS // digits.INTERVAL, 1)
        assert [found.segment for found in verdicts] == drawn
        assert [found.outcome for found in verdicts] == [Outcome.ACCEPTED]
