"""The transactions of one key on one chain: each effect once, in spite of pools, reorganizations and crashes."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace

from eth_typing import ChecksumAddress
from hexbytes import HexBytes
from web3.exceptions import TransactionNotFound, Web3RPCError
from web3.types import TxData, TxParams, TxReceipt, Wei

from pol.chain.account.gas_fees import DATA_FEE_ROOM, Budget, FeePolicy, Fees, InclusionPolicy, data_fee
from pol.chain.account.outbox_journal import Attempt, Intent, IntentState, OutboxJournal, OutgoingCall
from pol.chain.account.used_nonce import used_nonce
from pol.chain.node.connection import Connection, operational
from pol.chain.rpc.refused_transactions import Refusal
from pol.commitments.keccak import keccak256
from pol.errors import OperationalError, ProtocolError

LOG = logging.getLogger(__name__)
TRANSFER_GAS = 21_000
TRANSACTION_GAS = 1 << 24
"""The most of one transaction where EIP-7825 is in force."""
POLL_SECONDS = (0.02, 1.0)
"""The first pause between two polls, which doubles, and the longest."""

STRANGER = "another process sends with this key: end it, here or elsewhere, and give each process a key of its own"
MOST_POSTED = 16
"""Transactions under way at once: nodes keep few of one account."""


NEW_WORDS = 5 * 22_100
"""Gas of five words that storage has newly: a checkpoint of the second of the last block is changed, one of the next
second is a new one, and a call may write some of them."""


def with_margin(gas: int, block: int) -> int:
    """An estimate and what the next block may need beyond, if it has room in a transaction and in a block."""
    return min([gas + max(gas // 4, NEW_WORDS), *(most for most in (TRANSACTION_GAS, block) if gas <= most)])


class Outbox:
    """Sends one transaction after another with one key, and leaves none behind.

    ``sign`` returns the raw bytes of a transaction. ``simulate`` returns the gas of a call, or raises the contract's
    error. ``fees`` returns the base fee of the latest block and the node's suggested tip, in wei.
    """

    def __init__(
        self,
        connection: Connection,
        address: ChecksumAddress,
        sign: Callable[[TxParams], bytes],
        simulate: Callable[[OutgoingCall], int],
        journal: OutboxJournal,
        fees: Callable[[], tuple[int, int]],
        policy: FeePolicy,
        patience: InclusionPolicy,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
        tell: Callable[[str], None] = LOG.warning,
        paid: Callable[[TxReceipt], None] = lambda receipt: None,
    ) -> None:
        self.policy, self.patience, self.journal = policy, patience, journal
        self._connection, self._eth, self._address = connection, connection.web3.eth, address
        self._sign, self._simulate, self._fees = sign, simulate, fees
        self._clock, self._sleep, self._tell, self._paid = clock, sleep, tell, paid
        self._counted: set[bytes] = set()
        self._told: set[tuple[str, bytes]] = set()
        self._lock = threading.RLock()
        self._expected: int | None = None
        """The next nonce, if nobody else sends with this key."""
        self._resumed = b""
        """The last block at which there was nothing to finish."""

    def send(
        self, call: OutgoingCall, done: Callable[[], bool] = lambda: False, fees: Fees | None = None
    ) -> TxReceipt | None:
        """Make a call happen once and wait until it is in a block; None if ``done`` returns that it has happened.

        Raises:
            ProtocolError: the contract refuses it in the simulation.
            OperationalError: the node fails, the money is short, or it takes too long. The transaction stays in the
                journal; the next call resumes it, and the same call isn't sent twice.
        """
        with self._sending(call.name):
            deadline = self._clock() + self.patience.timeout
            while True:
                if done():
                    return None
                nonce, receipt = self._settle(deadline, call)
                if receipt is not None:
                    return receipt
                if done():
                    return None
                try:
                    gas = call.gas or self._with_margin(self._simulate(call))
                except ProtocolError:
                    if done():
                        return None
                    raise
                intent = Intent(0, nonce, call.name, call.to, call.value, call.data, gas)
                if (receipt := self._drive(self._begin(intent, fees), deadline)) is not None:
                    return receipt

    def post(self, call: OutgoingCall) -> None:
        """Broadcast a call behind those that are under way, without waiting; `resume` finishes it.

        It must not depend on any of them: it is simulated on the latest state.

        Raises:
            ProtocolError: the contract refuses it in the simulation.
            OperationalError: the node fails, or the money is short.
        """
        with self._sending(call.name):
            opened = self.journal.intents(IntentState.OPEN)
            if any(call.is_of(intent) for intent in opened):
                return
            latest = self._count("latest")
            nonce = max([latest, *(intent.nonce + 1 for intent in opened)])
            undone = any(intent.nonce >= latest for intent in self.journal.intents(IntentState.DONE))
            if undone or len(opened) >= MOST_POSTED or self._count("pending") != nonce:
                # Strangers with our key, gaps, reorganizations: what is before it is settled first.
                nonce, receipt = self._settle(self._clock() + self.patience.timeout, call)
                if receipt is not None:
                    return
            gas = call.gas or self._with_margin(self._simulate(call))
            self._begin(Intent(0, nonce, call.name, call.to, call.value, call.data, gas))

    def resume(self, block: bytes = b"") -> list[TxReceipt]:
        """Finish the transactions of an earlier process or call; their receipts.

        Call it at the start, before the chain is read. With the hash of the latest ``block`` it looks once a block
        while nothing is under way. Raises as ``send``.
        """
        if block and block == self._resumed and not self.journal.intents(IntentState.OPEN):
            return []
        with self._sending("earlier transactions"):
            receipts: list[TxReceipt] = []
            self._settle(self._clock() + self.patience.timeout, None, receipts)
        self._resumed = block
        return receipts

    def require(self, budget: Budget) -> None:
        """Require that the balance covers the rest of a game at the cap of the fees.

        Raises:
            OperationalError: it doesn't; the message names the missing amount.
        """
        with operational("read the fee for data on L1"):
            data = DATA_FEE_ROOM * data_fee(self._connection.web3, *[-(-budget.size // budget.moves)] * budget.moves)
        most, held = budget.most(self.policy, data), self._connection.balance(self._address)
        if held < most:
            told = f"; {data} wei may be taken for data on L1" if data else ""
            raise OperationalError(
                f"{self._address} holds {held} wei and the game may cost {most} wei: {budget.moves} moves of "
                f"{budget.gas} gas at {self.policy.cap} wei; {budget.value} wei go with them{told}. Send it "
                f"{most - held} wei"
            )

    @contextmanager
    def _sending(self, name: str) -> Iterator[None]:
        """In this key's turn, which lasts until nothing of this outbox is under way.

        Raises:
            OperationalError: another command or process has a transaction under way for too long.
        """
        with self._lock, operational(f"send {name}"):
            turn, since, pause = self.journal.turn, self._clock(), POLL_SECONDS[0]
            while turn is not None and not turn.take():
                if self._clock() - since <= (self.patience.timeout if turn.for_command else self.patience.seconds):
                    self._sleep(pause)
                    pause = min(2 * pause, POLL_SECONDS[1])
                    continue
                if turn.for_command:
                    raise OperationalError(
                        f"another process has a transaction of {self._address} under way, so {name} wasn't sent: try "
                        "again when that is in a block, or end that process"
                    )
                self._tell(STRANGER)
                turn = None
            if turn is not None and self._expected is not None:
                self._expected = max(self._expected, turn.next_nonce())
            try:
                yield
            finally:
                if turn is not None and not self.journal.intents(IntentState.OPEN):
                    turn.end(self._expected)

    def _settle(
        self, deadline: float, call: OutgoingCall | None, receipts: list[TxReceipt] | None = None
    ) -> tuple[int, TxReceipt | None]:
        """The next free nonce once everything before it is in blocks, or the receipt if that was the same call."""
        waited = None
        while True:
            latest = self._count("latest")
            for undone in self.journal.intents(IntentState.DONE):
                if undone.nonce >= latest and self._found(undone) is not None:
                    latest = undone.nonce + 1  # the count is of a back end that lags
                elif undone.nonce >= latest:
                    self._tell(f"{undone.name} (nonce {undone.nonce}) is no longer in a block: sending it again")
                    self.journal.mark(undone, IntentState.OPEN)
            intent = next(iter(self.journal.intents(IntentState.OPEN)), None)
            if intent is not None and intent.nonce <= latest:
                receipt = self._drive(intent, deadline)
                if receipt is not None and call is not None and call.is_of(intent):
                    return 0, receipt
                if receipt is not None and receipts is not None:
                    receipts.append(receipt)
                continue
            if intent is None and call is None and latest == self._expected:
                return latest, None  # a stranger's transaction matters only before one of our own
            pending = self._count("pending")
            if intent is None and pending <= latest:
                if self._expected is not None and latest > self._expected:
                    self._tell(STRANGER)
                self._expected = latest
                return latest, None
            # Unknown transactions of our key, perhaps from before the journal was lost: one of them may be this very
            # call. So wait for them as long as for our own, instead of sending another one.
            waited = waited if waited and waited[0] == latest else (latest, self._moment())
            if (intent is not None and pending <= latest) or self._late(waited[1]):
                self._tell(f"nonce {latest} is a gap or stuck: using it up with a transfer of nothing to ourselves")
                fill = Intent(0, latest, f"fill nonce {latest}", self._address, 0, b"", TRANSFER_GAS)
                self._drive(self._begin(fill, cancels=True), deadline)
            else:
                self._pause(deadline, POLL_SECONDS[1], f"a transaction at nonce {latest} that isn't in the journal")

    def _begin(self, intent: Intent, fees: Fees | None = None, cancels: bool = False) -> Intent:
        """Write to the journal, then broadcast."""
        attempt = self._attempt(intent, fees or self.policy.first(*self._fees()), cancels)
        intent = self.journal.begin(intent, attempt)
        self._expected = intent.nonce + 1
        self._broadcast(intent, attempt, is_first=True)
        return intent

    def _drive(self, intent: Intent, deadline: float) -> TxReceipt | None:
        """Wait, rebroadcast and replace until an attempt is deep enough in blocks; None if the intent was given up."""
        since, pause = self._moment(), POLL_SECONDS[0]
        while True:
            found = self._found(intent)
            if found is not None:
                attempt, receipt = found
                # Before its own nonce is used for good, a call isn't made again at another one.
                wanted = self.patience.depth if attempt.cancels else self.patience.confirmations
                if self._is_deep(receipt["blockNumber"], wanted):
                    if bytes(receipt["transactionHash"]) not in self._counted:
                        self._counted.add(bytes(receipt["transactionHash"]))
                        self._paid(receipt)
                    failed = receipt["status"] != 1
                    if failed:
                        self._tell(f"{intent.name} (nonce {intent.nonce}) failed in block {receipt['blockNumber']}")
                    # Without an effect there is nothing to tell but the failure: made once more, it is another call.
                    is_lost = attempt.cancels or (failed and not self.journal.kept)
                    self.journal.mark(intent, IntentState.LOST if is_lost else IntentState.DONE)
                    return None if attempt.cancels else receipt
            elif self._count("latest") > intent.nonce:
                if self._is_gone(intent):
                    self._tell(f"another transaction has taken nonce {intent.nonce} of {intent.name}: {STRANGER}")
                    self.journal.mark(intent, IntentState.LOST)
                    return None
            elif not self._push(intent, since):
                since = self._moment()
            self._pause(deadline, pause, f"{intent.name} at nonce {intent.nonce}")
            pause = min(2 * pause, POLL_SECONDS[1])

    def _is_gone(self, intent: Intent) -> bool:
        """Whether another transaction has the intent's nonce for good; a receipt that is late proves nothing."""
        attempts = [attempt.hash for attempt in self.journal.attempts(intent)]
        if any(self._shown(digest).get("blockNumber") is not None for digest in attempts):
            return False
        try:
            used = used_nonce(self._eth, self._address, intent.nonce)
        except Web3RPCError as error:
            self._tell_once(
                "state",
                self.journal.attempts(intent)[-1],
                f"the node can't show which transaction has nonce {intent.nonce} of {intent.name} ({error}): it goes "
                "on waiting; name an archive node",
            )
            return False
        if used is None or used.hash in attempts:
            return False
        return used.hash in self._counted or self._is_deep(used.block, self.patience.depth)

    def _push(self, intent: Intent, since: tuple[float, int]) -> bool:
        """Whether the newest attempt goes on waiting; otherwise it was replaced."""
        newest = self.journal.attempts(intent)[-1]
        known = self._is_known(newest)
        # Without a new block, a higher fee can't help.
        late = self._late(since) and (not known or self._connection.block_number() > since[1])
        if known and not late:
            return True
        base, tip = self._fees()
        cancels, gas = newest.cancels, intent.gas
        if not cancels and intent.data:
            try:
                gas = self._simulate(OutgoingCall(intent.name, intent.to, intent.value, intent.data))
            except ProtocolError as refused:
                self._tell(f"{intent.name} is cancelled at nonce {intent.nonce}: {refused}")
                cancels = True
        if not known and cancels == newest.cancels:
            self._broadcast(intent, newest)
        # After a reorganization the same call may need more gas, for example for the first write of a word.
        hopeless = not known and (base > newest.most or gas > intent.gas)
        if cancels == newest.cancels and not hopeless and not late:
            return True
        raised = self.policy.raised(Fees(newest.most, newest.tip), base, tip)
        if raised is None:
            told = (
                f"{intent.name} (nonce {intent.nonce}) has reached the cap of its fees, {newest.most} wei with a tip "
                f"of {newest.tip}, and isn't in a block: it goes on waiting; raise the cap of the policy to replace it"
            )
            self._tell_once("cap", newest, told)
            return True
        attempt = self._attempt(
            intent if gas <= intent.gas else replace(intent, gas=self._with_margin(gas)), raised, cancels
        )
        self.journal.add(intent, attempt)
        self._broadcast(intent, attempt)
        return False

    def _with_margin(self, gas: int) -> int:
        return with_margin(gas, self._connection.block_gas_limit())

    def _attempt(self, intent: Intent, fees: Fees, cancels: bool = False) -> Attempt:
        to = self._address if cancels else intent.to
        transaction: TxParams = {
            "from": self._address,
            "value": Wei(0 if cancels else intent.value),
            "data": HexBytes(b"" if cancels else intent.data),
            "gas": TRANSFER_GAS if cancels else intent.gas,
            "nonce": intent.nonce,  # type: ignore[typeddict-item]  # a plain int is a Nonce
            "chainId": self._connection.chain_id,
            "maxFeePerGas": Wei(fees.most),
            "maxPriorityFeePerGas": Wei(fees.tip),
        }
        if to is not None:
            transaction["to"] = to
        raw = self._sign(transaction)
        return Attempt(keccak256(raw), fees.most, fees.tip, raw, cancels)

    def _broadcast(self, intent: Intent, attempt: Attempt, is_first: bool = False) -> None:
        """Offer an attempt to the node; a refusal is retried later, unless no node can have it: that of the first."""
        try:
            self._eth.send_raw_transaction(HexBytes(attempt.raw))
        except Web3RPCError as error:
            refusal = Refusal.of(str(error))
            if refusal in (Refusal.KNOWN, Refusal.USED):
                return
            if refusal is Refusal.UNSURE:
                raise
            if is_first and refusal is not Refusal.LOW_FEE:
                self.journal.mark(intent, IntentState.LOST)
                need = f"; it needs {intent.value + intent.gas * attempt.most} wei" if refusal is Refusal.FUNDS else ""
                raise OperationalError(f"the node refuses {intent.name} from {self._address}: {error}{need}") from error
            told = f"the node refuses an attempt of {intent.name} (nonce {intent.nonce}) for now: {error}"
            self._tell_once(refusal.name, attempt, told)

    def _tell_once(self, what: str, attempt: Attempt, told: str) -> None:
        if (what, attempt.hash) not in self._told:
            self._told.add((what, attempt.hash))
            self._tell(told)

    def _found(self, intent: Intent) -> tuple[Attempt, TxReceipt] | None:
        for attempt in reversed(self.journal.attempts(intent)):
            try:
                return attempt, self._eth.get_transaction_receipt(HexBytes(attempt.hash))
            except TransactionNotFound:
                continue
        return None

    def _is_known(self, attempt: Attempt) -> bool:
        return bool(self._shown(attempt.hash))

    def _shown(self, digest: bytes) -> TxData:
        try:
            return self._eth.get_transaction(HexBytes(digest))
        except TransactionNotFound:
            return {}

    def _is_deep(self, block: int, wanted: int) -> bool:
        return wanted <= 1 or self._connection.block_number() - block + 1 >= wanted

    def _count(self, block: str) -> int:
        return int(self._eth.get_transaction_count(self._address, block))  # type: ignore[arg-type]  # a tag

    def _moment(self) -> tuple[float, int]:
        return self._clock(), self._connection.block_number()

    def _late(self, since: tuple[float, int]) -> bool:
        clock, block = self._moment()
        return block - since[1] >= self.patience.blocks or clock - since[0] >= self.patience.seconds

    def _pause(self, deadline: float, seconds: float, what: str) -> None:
        if self._clock() > deadline:
            raise OperationalError(
                f"{what} isn't in enough blocks after {self.patience.timeout} s: it stays where it is, and the next "
                "call takes it up; look at the node, and at the cap of the fees"
            )
        self._sleep(seconds)
