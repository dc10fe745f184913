"""A learning record on chain: heads that only grow, demands that are answered from the store, stakes that are lost."""

import dataclasses
from collections.abc import Iterator
from pathlib import Path

import pytest
from eth_typing import ChecksumAddress
from record_store import write_record

import toy_market
from pol.chain.account.wallet import Reverted, Wallet
from pol.chain.node.connection import Connection
from pol.chain.records.learning_log import LearningLog, RecordDemand, RunStatus
from pol.chain.records.record_publisher import RecordPublisher, Schedule, answer_from
from pol.commitments.checkpoint_log import CheckpointLog, verify_inclusion
from pol.commitments.keccak import keccak256
from pol.errors import OperationalError, ProtocolError
from pol.training.record.learning_record import LearningRecord
from pol.training.record.recorded_chunks import prove_recorded
from pol.training.storage.store import Store
from shared_chain import SharedChain

ETHER = 10**18
DAY = 86_400
TERMS = {"stake": 8 * ETHER, "window": DAY, "exit_delay": 30 * DAY, "price": ETHER // 1000}


def wallets(connection: Connection) -> list[Wallet]:
    return [Wallet.create(connection, bytes([i]) * 32) for i in (1, 2, 3)]


def deployed(connection: Connection) -> ChecksumAddress:
    toy_market.fund(connection, *(wallet.address for wallet in wallets(connection)))
    return LearningLog.deploy(wallets(connection)[0]).address


class Parties:
    """A contract, a store with a record that grows, and three wallets."""

    def __init__(self, connection: Connection, address: ChecksumAddress, folder: Path) -> None:
        self.connection, self.folder = connection, folder
        self.wallet, self.demander, self.stranger = wallets(connection)
        self.log = LearningLog(connection, address)
        self.store = Store(f"file://{folder}")

    def grow(self, size: int) -> LearningRecord:
        return write_record(self.store, size)

    def publisher(self, checkpoints: int | None = 3, seconds: int | None = None) -> RecordPublisher:
        return RecordPublisher(self.log, self.wallet, self.store, Schedule(checkpoints, seconds))

    def demand(self, index: int, position: int, leaf: int) -> RecordDemand:
        return self.log.demand(self.demander, self.publisher().id, index, position, leaf)


@pytest.fixture
def parties(chain: SharedChain, tmp_path: Path) -> Iterator[Parties]:
    with chain.lent("learning log", deployed) as address:
        yield Parties(chain.connection, address, tmp_path / "store")


def test_heads_are_posted_on_schedule(parties: Parties) -> None:
    parties.grow(1)
    with pytest.raises(ProtocolError, match="none on chain: open it first"):
        parties.publisher().post()
    identity = parties.publisher().open(**TERMS)
    assert parties.publisher().open(**TERMS) == identity
    sizes = []
    for size in range(1, 7):
        record = parties.grow(size)
        # A new publisher each time: it keeps nothing.
        parties.publisher().post()
        assert parties.publisher().post() is None
        run = parties.log.run(identity)
        sizes.append(run.size)
        assert run.size == 0 or run.root == record.log.root(run.size)
    assert sizes == [0, 0, 3, 3, 3, 6]
    parties.grow(8)
    by_time = parties.publisher(None, 3600)
    assert by_time.post() is None
    parties.connection.wait_until(parties.connection.now() + 3600)
    assert by_time.post() is not None
    assert by_time.post(now=True) is None
    run = parties.log.run(identity)
    assert (run.size, run.status, run.publisher) == (8, RunStatus.OPEN, parties.wallet.address)
    assert [e["size"] for e in parties.log.events("Posted", id=identity)] == [3, 6, 8]


def test_another_history_is_refused_before_it_is_sent(parties: Parties, tmp_path: Path) -> None:
    parties.grow(4)
    publisher = parties.publisher()
    publisher.open(**TERMS)
    publisher.post()
    other = Store(f"file://{tmp_path}/other")
    write_record(other, 6, salt=1)
    sent = len(parties.wallet.receipts)
    with pytest.raises(ProtocolError, match="doesn't extend the 4 checkpoints"):
        RecordPublisher(parties.log, parties.wallet, other, Schedule(1)).post()
    assert len(parties.wallet.receipts) == sent


def test_anybody_posts_a_signed_head(parties: Parties) -> None:
    record = parties.grow(5)
    publisher = parties.publisher()
    identity = publisher.open(**TERMS)
    signature = parties.log.sign_head(parties.wallet, identity, 5, record.log.root())
    parties.log.relay(parties.stranger, identity, 5, record.log.root(), [], signature)
    assert parties.log.run(identity).size == 5
    assert publisher.post(now=True) is None


def test_a_race_for_the_post_is_no_error(parties: Parties, monkeypatch: pytest.MonkeyPatch) -> None:
    """Somebody relays the head between the publisher's look at the chain and its transaction."""
    record = parties.grow(3)
    publisher = parties.publisher()
    identity = publisher.open(**TERMS)
    signature = parties.log.sign_head(parties.wallet, identity, 3, record.log.root())
    post = parties.log.post

    def beaten(*arguments: object) -> object:
        parties.log.relay(parties.stranger, identity, 3, record.log.root(), [], signature)
        return post(*arguments)  # type: ignore[arg-type]  # what the publisher passes on

    monkeypatch.setattr(parties.log, "post", beaten)
    assert publisher.post() is None
    assert parties.log.run(identity).size == 3


def test_every_leaf_of_every_entry_is_answered(parties: Parties) -> None:
    """Python's proofs and the contract's check agree for documents and arrays of all shapes; numbers wrap around."""
    record = parties.grow(3)
    publisher = parties.publisher()
    identity = publisher.open(**TERMS)
    publisher.post()
    count = prove_recorded(parties.store, record, 1, 0, 0).count
    wanted = [(position % 3, position, position + 1) for position in range(count)] + [(1, 2**32 - 1, 2**64 - 1)]
    demands = [parties.demand(*numbers) for numbers in wanted]
    assert [d.key for d in parties.log.demands(identity)] == [d.key for d in demands]
    parties.grow(5)
    publisher.post(now=True)
    assert publisher.answer() == demands
    assert parties.log.demands(identity) == []
    assert publisher.answer() == []
    answers = parties.log.answers(identity)
    assert {a.name for a in answers} == {"b", "e", "m", "m/bias", "m/none", "m/weight"}
    for (index, position, leaf), answer in zip(wanted, answers, strict=True):
        proof = prove_recorded(parties.store, record, index, position, leaf)
        assert (answer.name, answer.leaf, answer.count) == (proof.entry, proof.leaf, count)
        verify_inclusion(record.log.root(), 3, index, answer.root, record.log.inclusion(index))
    bonds = sum(demand.bond for demand in demands)
    assert parties.log.credit(parties.wallet.address) == bonds
    parties.log.withdraw(parties.wallet)
    assert parties.connection.balance(parties.log.address) == TERMS["stake"]


def test_withheld_data_costs_the_stake(parties: Parties) -> None:
    parties.grow(3)
    publisher = parties.publisher()
    identity = publisher.open(**TERMS)
    publisher.post()
    demand = parties.demand(1, 3, 0)
    for file in parties.folder.rglob("*.safetensors"):
        file.unlink()
    with pytest.raises(OperationalError):
        publisher.answer()
    parties.connection.wait_until(demand.deadline)
    assert publisher.answer() == []
    parties.log.expire(parties.stranger, demand)
    assert parties.connection.balance(parties.log.address) == TERMS["stake"] // 4 + demand.bond
    assert parties.log.credit(parties.demander.address) == TERMS["stake"] // 4 + demand.bond
    assert parties.log.run(identity).status is RunStatus.WITHHELD
    parties.grow(4)
    with pytest.raises(ProtocolError, match="withheld on chain"):
        publisher.post()
    parties.log.withdraw(parties.demander)
    assert parties.connection.balance(parties.log.address) == 0


def test_a_stranger_with_a_copy_answers_for_the_publisher(parties: Parties, tmp_path: Path) -> None:
    record = parties.grow(3)
    publisher = parties.publisher()
    publisher.open(**TERMS)
    publisher.post()
    demand = parties.demand(2, 3, 1)
    with pytest.raises(Reverted, match="PublisherFirst"):
        answer_from(parties.log, parties.stranger, parties.store, record, demand)
    other = Store(f"file://{tmp_path}/other")
    with pytest.raises(ProtocolError, match="another record than the one whose data"):
        answer_from(parties.log, parties.stranger, other, write_record(other, 3, salt=1), demand)
    parties.connection.wait_until(demand.deadline - DAY // 2)
    answer_from(parties.log, parties.stranger, parties.store, record, demand)
    assert parties.log.credit(parties.stranger.address) == demand.bond


def test_one_demand_that_fails_keeps_no_other_from_its_answer(parties: Parties) -> None:
    """One checkpoint is lost, one demand was answered by somebody else: the rest is answered, and the loss is told."""
    record = parties.grow(3)
    publisher = parties.publisher()
    publisher.open(**TERMS)
    publisher.post()
    lost, taken, fine = parties.demand(0, 3, 0), parties.demand(1, 3, 0), parties.demand(2, 3, 0)
    (file,) = parties.folder.rglob(f"{record.checkpoints[0].root.hex()}.safetensors")
    file.unlink()
    parties.connection.wait_until(fine.deadline - DAY // 2)
    open_before = parties.log.demands(publisher.id)
    answer_from(parties.log, parties.stranger, parties.store, record, taken)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(parties.log, "demands", lambda identity: open_before)
        with pytest.raises(OperationalError, match=record.checkpoints[0].root.hex()):
            publisher.answer()
    assert parties.log.demands(publisher.id) == [lost]
    assert parties.log.credit(parties.wallet.address) == fine.bond


def test_a_name_that_is_no_text_is_shown(parties: Parties) -> None:
    """The contract checks hashes and lengths; a stranger's name may be any bytes."""
    name, form, leaf = b"\xff\n", b"\x0e" + (1).to_bytes(8, "big"), b"!".ljust(256, b"\0")
    content = keccak256(form + keccak256(b"\0" + leaf))
    entry = keccak256(b"\x0d" + len(name).to_bytes(2, "big") + name + content)
    log = CheckpointLog([keccak256(b"\x0c" + (1).to_bytes(4, "big") + entry)])
    run = b"\x09" * 32
    parties.log.open(parties.wallet, run, stake=0, window=60, exit_delay=60)
    identity = parties.log.id_of(parties.wallet.address, run)
    parties.log.post(parties.wallet, identity, 1, log.root(), [])
    demand = parties.log.demand(parties.demander, identity, 0, 7, 7)
    chunk = (name, form, leaf, [], 1, [], [])
    parties.wallet.send(parties.log.function("answer", dataclasses.astuple(demand), chunk))
    (answer,) = parties.log.answers(identity)
    assert (answer.name, answer.leaf) == ("\\xff\n", leaf)


def test_the_stake_comes_back(parties: Parties) -> None:
    parties.grow(3)
    identity = parties.publisher().open(**TERMS)
    parties.connection.wait_until(parties.connection.now() + 30 * DAY)
    parties.log.close(parties.wallet, identity)
    assert parties.log.credit(parties.wallet.address) == TERMS["stake"]


@pytest.mark.parametrize(("checkpoints", "seconds"), [(None, None), (0, None), (3, 0)])
def test_schedules_that_are_refused(checkpoints: int | None, seconds: int | None) -> None:
    with pytest.raises(ProtocolError, match="a schedule needs"):
        Schedule(checkpoints, seconds)
