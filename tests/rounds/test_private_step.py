"""DP-SGD on sealed data: who has the key replays sampling, clipping and noise; others check roots and merges."""

from dataclasses import dataclass
from functools import partial

import pytest
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
from logged_trainings import Convict, by_replay, executions, told

from lab.rounds.replica_cheats import NO_NOISE, OTHER_CLIP, REPLAYED, CarelessOwner
from pol.decentralised.private_step import (
    MERGE,
    PRIVATE,
    PrivateTraining,
    batch_limit,
    data_owner,
    epsilon,
    private_plan,
    private_round,
)
from pol.decentralised.processes.local_processes import local_key, run_workers
from pol.errors import OperationalError, ProtocolError
from pol.rounds.auditing.claim_replay import load_constants
from pol.rounds.auditing.round_audit import Lie, findings_by_roots
from pol.rounds.claim_author import ClaimAuthor
from pol.rounds.log.logged_rounds import LoggedRounds, read_rounds
from pol.rounds.log.rounds_log import load_head, require_whole
from pol.training.storage.sealing import SealedStore
from pol.training.storage.store import Store

OPTIONS = PrivateTraining(rounds=4, steps=2, rows=48, sampled=1 / 8)
OWNERS, AUDITOR = (b"\x01" * 32, b"\x02" * 32), b"\x03" * 32
LIAR = 1


def public(secret: bytes) -> bytes:
    return X25519PrivateKey.from_private_bytes(secret).public_key().public_bytes_raw()


@dataclass(frozen=True)
class Run:
    url: str

    def read(self, secret: bytes | None = None) -> LoggedRounds:
        plain = Store(self.url)
        store = plain if secret is None else SealedStore(plain, key=X25519PrivateKey.from_private_bytes(secret))
        plan, head = load_head(store)
        require_whole(store, head)
        return read_rounds(store, plan, head)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    folder = tmp_path_factory.mktemp("private")
    store = Store(f"file://{folder}/store")
    vaults = [SealedStore(store, [public(owner), public(AUDITOR)]) for owner in OWNERS]
    plan = private_plan(store, OPTIONS, local_key(-1).name, bytes(32), vaults, seeds=[11, 12])
    authors = {0: partial(data_owner, OWNERS[0], ClaimAuthor), LIAR: partial(data_owner, OWNERS[1], CarelessOwner)}
    run_workers(folder, plan, private_round, 2, authors)
    return Run(store.url)


@pytest.mark.long
def test_an_auditor_with_the_key_finds_every_lie(run: Run, convict: Convict) -> None:
    rounds = run.read(AUDITOR)
    assert not list(findings_by_roots(rounds))
    found = by_replay(rounds)
    assert told(found) == executions(*[(LIAR, round_, PRIVATE) for round_ in (REPLAYED, NO_NOISE, OTHER_CLIP)])
    convict(rounds, found[0].claim)


@pytest.mark.long
def test_others_check_roots_and_merges(run: Run) -> None:
    rounds = run.read()
    assert not list(findings_by_roots(rounds))
    found = by_replay(rounds)
    assert {(item.lie, item.phase) for item in found} == {(Lie.WITHHELD, PRIVATE)}
    assert len(found) == OPTIONS.rounds * 2
    with pytest.raises(OperationalError, match="sealed"):
        load_constants(rounds.store, rounds.plan.phases[0], 0)


@pytest.mark.long
def test_an_owner_reads_its_own_data_only(run: Run) -> None:
    found = by_replay(run.read(OWNERS[0]))
    assert {(item.lie, item.worker) for item in found} == {(Lie.WITHHELD, local_key(1).name)}
    found = by_replay(run.read(OWNERS[1]))
    assert {item.worker for item in found if item.lie is Lie.WITHHELD} == {local_key(0).name}
    assert len([item for item in found if item.lie is Lie.EXECUTION]) == 3
    assert MERGE not in {item.phase for item in found}


@pytest.mark.parametrize(
    ("rate", "noise", "steps", "published"),
    [
        (0.01, 4.0, 10_000, 1.26),  # Abadi et al., 1607.00133, section 3
        (256 / 60_000, 1.3, 15 * 60_000 // 256, 1.19),  # the table of TensorFlow Privacy's tutorial on MNIST
        (256 / 60_000, 1.1, 60 * 60_000 // 256, 3.01),
        (256 / 60_000, 0.7, 45 * 60_000 // 256, 7.10),
    ],
)
def test_the_bound_is_the_published_one(rate: float, noise: float, steps: int, published: float) -> None:
    assert epsilon(rate, noise, steps, 1e-5) == pytest.approx(published, rel=0.01)


def test_the_bound_of_whole_batches_is_the_gaussian_one() -> None:
    order, noise, delta = 8, 5.0, 1e-5
    assert epsilon(1.0, noise, 1, delta) <= order / (2 * noise**2) + 11.512925465 / (order - 1)
    assert epsilon(1.0, noise, 4, delta) > epsilon(0.5, noise, 4, delta) > epsilon(0.5, noise, 3, delta)
    with pytest.raises(ProtocolError, match="noise above 0"):
        epsilon(0.1, 0.0, 1, delta)


def test_a_batch_is_seldom_longer_than_its_limit() -> None:
    assert batch_limit(2, 0.5, tail=0.3) == 1
    assert batch_limit(2, 0.5, tail=0.2) == 2
    assert batch_limit(256, 1 / 16) < 64
