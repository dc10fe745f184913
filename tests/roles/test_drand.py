"""A task of the digits whose segment is drawn by a published round of drand: the verifier fetches and submits it."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from role_market import INTERVAL, OFFER, STEPS, Town, deployed, until_proof
from web3.types import RPCEndpoint, TxReceipt

from anvil_node import anvil_node
from drand_relay import ROUNDS, relay
from pol.chain.beacon.drand_relays import Relays
from pol.chain.deployment_rules import DRAND_DELAY, BeaconKind
from pol.chain.desks.proof_registry import ProofRegistry
from pol.chain.node.connection import Connection
from pol.claims.segment_draw import draw
from pol.errors import OperationalError
from pol.roles.verifier.verifier import Verifier
from pol.verification.beacon.drand import QUICKNET
from pol.verification.verdict.verdict import Outcome

PUBLISHED = next(published for published in ROUNDS["quicknet"] if published.number == 30662990)
COMMITTED = QUICKNET.time_of(PUBLISHED.number) - DRAND_DELAY - 1


@pytest.mark.slow
def test_a_verifier_brings_the_round_of_the_commitment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    commit = ProofRegistry.commit

    def punctual(proofs: ProofRegistry, *arguments: Any) -> TxReceipt:
        """The solver commits in the second that the round is bound to; the chain's clock is the only thing arranged."""
        proofs.connection.web3.provider.make_request(RPCEndpoint("evm_setNextBlockTimestamp"), [COMMITTED])
        return commit(proofs, *arguments)

    monkeypatch.setattr(ProofRegistry, "commit", punctual)
    with anvil_node("--timestamp", str(COMMITTED - 6 * 3600)) as url, relay() as relay_url:
        town = Town(tmp_path, deployed(Connection.to(url), beacon_kind=BeaconKind.DRAND))
        verifier = town.join(Verifier, "v")
        task_id = until_proof(town, replace(OFFER, margin=0))
        proofs, seats = verifier.market.proofs, verifier.market.seats
        # One commitment, one round: it draws the segments, and who verifies them.
        assert proofs.proof(task_id).round == seats.seating(task_id).round == PUBLISHED.number
        for verb in (verifier.claim_seat, verifier.replay):
            with pytest.raises(OperationalError, match="isn't on chain yet: name relays"):
                verb(task_id)
        verifier.rounds = Relays([relay_url]).round
        verdicts = verifier.replay(task_id)
        assert [found.segment for found in verdicts] == draw(PUBLISHED.seed, STEPS // INTERVAL, 1)
        assert [found.outcome for found in verdicts] == [Outcome.ACCEPTED]
        verifier.claim_seat(task_id)
        assert seats.seating(task_id).seed == PUBLISHED.seed
