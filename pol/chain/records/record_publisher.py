"""The publisher of a learning record: posts heads on a schedule and answers demands for data.

It keeps no state of its own: all follows from store and chain, so it may be restarted at any time.
"""

from __future__ import annotations

from dataclasses import dataclass

from web3.types import TxReceipt

from pol.chain.account.wallet import Reverted, Wallet
from pol.chain.records.learning_log import LearningLog, PostedRun, RecordDemand, RunStatus
from pol.errors import PolError, ProtocolError
from pol.training.record import learning_record
from pol.training.record.learning_record import LearningRecord
from pol.training.record.recorded_chunks import prove_recorded
from pol.training.storage.store import Store


@dataclass(frozen=True)
class Schedule:
    """When to post a head: after a number of checkpoints or seconds, whichever comes first.

    Raises:
        ProtocolError: neither is given, or one is below 1.
    """

    checkpoints: int | None = None
    seconds: int | None = None

    def __post_init__(self) -> None:
        given = [value for value in (self.checkpoints, self.seconds) if value is not None]
        if not given or min(given) < 1:
            raise ProtocolError("a schedule needs a number of checkpoints or of seconds, 1 or more")

    def is_due(self, new: int, seconds: int) -> bool:
        """Whether to post ``new`` checkpoints, ``seconds`` after the last post."""
        by_count = self.checkpoints is not None and new >= self.checkpoints
        return new > 0 and (by_count or (self.seconds is not None and seconds >= self.seconds))


class RecordPublisher:
    """Posts the head of the record in a store, and answers demands from that store."""

    def __init__(self, contract: LearningLog, wallet: Wallet, store: Store, schedule: Schedule) -> None:
        self.contract = contract
        self.wallet = wallet
        self.store = store
        self.schedule = schedule

    @property
    def id(self) -> bytes:
        """The id of the record's run on the contract."""
        return self.contract.id_of(self.wallet.address, self._record().run)

    def open(self, *, stake: int, window: int, exit_delay: int, price: int = 0) -> bytes:
        """Open the record's run unless it is open; its id."""
        run = self._record().run
        identity = self.contract.id_of(self.wallet.address, run)
        if self.contract.run(identity).status is RunStatus.NONE:
            self.contract.open(self.wallet, run, stake=stake, window=window, exit_delay=exit_delay, price=price)
        return identity

    def post(self, *, now: bool = False) -> TxReceipt | None:
        """Post the newest head if it is due, or if it is new and ``now`` is set; None if nothing was sent.

        Raises:
            ProtocolError: the run isn't open, or the record doesn't extend what was posted.
        """
        record = self._record()
        identity = self.contract.id_of(self.wallet.address, record.run)
        run, log = self.contract.run(identity), record.log
        if run.status is not RunStatus.OPEN:
            raise ProtocolError(f"the run is {run.status.name.lower()} on chain: open it first")
        _require_extension(record, run)
        new, size = len(log) - run.size, len(log)
        if not new or not (now or self.schedule.is_due(new, self.contract.connection.now() - run.posted)):
            return None
        path = log.consistency(run.size) if run.size else []
        try:
            return self.contract.post(self.wallet, identity, size, log.root(), path)
        except Reverted:
            after = self.contract.run(identity)
            if after.size <= run.size:
                raise
            # Somebody has relayed a signed head, or a receipt got lost; the rest is posted next time.
            _require_extension(record, after)
            return None

    def answer(self) -> list[RecordDemand]:
        """Answer every open demand of the run, the most urgent one first; returns the answered ones.

        Both errors are raised after all demands were tried.

        Raises:
            ProtocolError: the store holds another record than the posted one.
            OperationalError: node or store failed: the demand stays open, call again before its deadline.
        """
        record = self._record()
        answered, failures = list[RecordDemand](), list[PolError]()
        for demand in self.contract.demands(self.contract.id_of(self.wallet.address, record.run)):
            if self.contract.connection.now() > demand.deadline:
                continue
            try:
                answer_from(self.contract, self.wallet, self.store, record, demand)
                answered.append(demand)
            except PolError as error:
                # Somebody else has answered it meanwhile.
                if not isinstance(error, Reverted) or error.error != "NoSuchDemand":
                    failures.append(error)
        if failures:
            raise failures[0]
        return answered

    def _record(self) -> LearningRecord:
        return learning_record.load_record(self.store)


def answer_from(
    contract: LearningLog, wallet: Wallet, store: Store, record: LearningRecord, demand: RecordDemand
) -> TxReceipt:
    """Answer a demand from a store that holds the record; in the second half of the window anybody may.

    Raises:
        ProtocolError: the store holds another record, or the contract refuses the answer.
    """
    log = record.log
    if len(log) < demand.size or log.root(demand.size) != demand.root:
        raise ProtocolError("the store holds another record than the one whose data is demanded: name its own store")
    proof = prove_recorded(store, record, demand.index, demand.position, demand.leaf)
    return contract.answer(wallet, demand, proof, log.inclusion(demand.index, demand.size))


def _require_extension(record: LearningRecord, run: PostedRun) -> None:
    log = record.log
    if run.size > len(log) or (run.size and log.root(run.size) != run.root):
        raise ProtocolError(
            f"the record in the store doesn't extend the {run.size} checkpoints that were posted: it is another one, "
            "or an older copy"
        )
