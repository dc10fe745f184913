"""One effect for each call, whatever happens to fees, pools and blocks."""

import pytest
from manual_node import COUNTER, ONCE, count, pool

from pol.chain.account.gas_fees import GWEI, ORACLE, Budget, FeePolicy, Fees, InclusionPolicy
from pol.chain.account.outbox import STRANGER
from pol.chain.account.outbox_journal import IntentState, OutboxJournal, OutgoingCall
from pol.chain.account.wallet import Reverted, Wallet
from pol.chain.node.connection import Connection
from pol.chain.rpc.refused_transactions import Refusal
from pol.errors import OperationalError


def test_fees_are_raised_by_an_eighth_up_to_the_cap() -> None:
    policy = FeePolicy(cap=1000, tip_cap=100)
    assert policy.first(200, 10) == Fees(410, 10)
    assert policy.first(900, 500) == Fees(1000, 100)
    assert policy.raised(Fees(410, 10), 200, 10) == Fees(462, 12)
    assert policy.raised(Fees(410, 10), 400, 50) == Fees(850, 50)
    assert policy.raised(Fees(800, 10), 2000, 10) == Fees(1000, 12)
    assert policy.raised(Fees(900, 10), 1, 1) is None
    assert policy.raised(Fees(100, 90), 1, 1) is None
    assert policy.raised(Fees(0, 0), 0, 0) == Fees(1, 1)


@pytest.mark.parametrize(
    ("message", "refusal"),
    [
        ("already known", Refusal.KNOWN),
        ("{'code': -32003, 'message': 'transaction already imported'}", Refusal.KNOWN),
        ("AlreadyKnown", Refusal.KNOWN),
        ("nonce too low: next nonce 7, tx nonce 5", Refusal.USED),
        ("OldNonce, Current nonce: 7", Refusal.USED),
        ("replacement transaction underpriced", Refusal.LOW_FEE),
        ("max fee per gas less than block base fee: address 0x1", Refusal.LOW_FEE),
        ("insufficient funds for gas * price + value", Refusal.FUNDS),
        ("Internal error", Refusal.UNSURE),
        ("exceeds block gas limit", Refusal.OTHER),
    ],
)
def test_what_nodes_answer(message: str, refusal: Refusal) -> None:
    assert Refusal.of(message) is refusal


def test_a_fee_spike_of_a_hundred_is_followed() -> None:
    with pool() as node:
        wallet = node.wallet()
        node.steps = [lambda: node.mine(base=100 * GWEI)] * 5
        assert count(wallet)["effectiveGasPrice"] > 100 * GWEI
        assert (node.counted(), node.nonce(wallet), len(wallet.receipts)) == (1, 1, 1)
        assert wallet.balance() == 10**20 - wallet.gas_paid


def test_the_cap_is_told_and_the_last_attempt_stays() -> None:
    with pool() as node:
        wallet = node.wallet(policy=FeePolicy(cap=5 * GWEI, tip_cap=2 * GWEI), patience=InclusionPolicy(2, 30, 20))
        spike = [lambda: node.mine(base=100 * GWEI)] * 60
        node.steps = list(spike)
        with pytest.raises(OperationalError, match=r"count at nonce 0 isn't in enough blocks.*cap of the fees"):
            count(wallet)
        assert sum("has reached the cap" in told for told in node.told) == 1
        assert len(wallet.journal.intents(IntentState.OPEN)) == 1
        assert node.counted() == 0
        node.steps = []
        node.mine(base=GWEI)
        count(wallet)
        assert (node.counted(), node.nonce(wallet)) == (1, 1)


def test_a_dropped_transaction_is_broadcast_again() -> None:
    with pool() as node:
        wallet = node.wallet()
        node.steps = [node.halt, lambda: node.drop(wallet), node.halt, lambda: node.drop(wallet), node.mine]
        count(wallet)
        assert (node.counted(), node.nonce(wallet)) == (1, 1)


def test_while_no_block_comes_nothing_is_raised() -> None:
    with pool() as node:
        wallet = node.wallet()
        node.steps = [node.halt] * 60
        count(wallet)
        assert len(wallet.receipts) == 1
        assert wallet.receipts[0]["effectiveGasPrice"] < 3 * GWEI


@pytest.mark.parametrize("depth", [1, 2, 7])
@pytest.mark.parametrize("finished", [False, True])
def test_reorganisations(depth: int, finished: bool) -> None:
    """Blocks are replaced by others without our transaction, and the node doesn't keep it: anvil forgets it."""

    def reorganise() -> None:
        assert node.counted() == 1
        node.order("anvil_reorg", depth, [])
        assert (node.counted(), node.hashes(wallet)) == (0, [])

    with pool() as node:
        wallet = node.wallet(
            patience=InclusionPolicy(2, 30, 100, confirmations=1 if finished else depth + 1),
            journal=OutboxJournal(kept=10),
        )
        if finished:
            count(wallet)
            node.mine(depth - 1)
            reorganise()
            assert [receipt["status"] for receipt in wallet.outbox.resume()] == [1]
            assert node.heard("no longer in a block")
            assert wallet.outbox.resume() == []
        else:
            node.steps = [node.mine] * depth + [reorganise]
            count(wallet)
        assert (node.counted(), node.nonce(wallet), len(wallet.receipts)) == (1, 1, 1)


def test_what_a_reorganisation_took_comes_before_what_is_new() -> None:
    """Three effects, the last two vanish, a fourth is asked for: all are there, in their order."""
    with pool() as node:
        wallet = node.wallet(journal=OutboxJournal(kept=10))
        for _ in range(3):
            count(wallet)
        node.order("anvil_reorg", 2, [])
        assert node.counted() == 1
        friend = node.eth.accounts[1]
        held = node.eth.get_balance(friend)
        wallet.transfer(friend, 5)
        assert (node.counted(), node.nonce(wallet), node.eth.get_balance(friend) - held) == (3, 4, 5)


def test_a_transaction_from_before_the_journal_was_lost_is_waited_for() -> None:
    with pool() as node:
        lost = node.wallet(patience=InclusionPolicy(2, 30, 0))
        node.steps = [node.halt] * 3
        with pytest.raises(OperationalError, match="stays where it is"):
            count(lost)
        wallet = node.wallet()
        node.steps = []
        assert wallet.outbox.send(OutgoingCall("count", COUNTER, data=b"\x01"), lambda: node.counted() == 1) is None
        assert (node.counted(), node.nonce(wallet)) == (1, 1)


def test_a_stuck_nonce_from_before_the_journal_was_lost_is_used_up() -> None:
    with pool() as node:
        lost = node.wallet(patience=InclusionPolicy(2, 30, 0))
        node.steps = [node.halt] * 3
        with pytest.raises(OperationalError):
            count(lost)
        wallet = node.wallet()
        node.steps = [node.crowd] * 3
        count(wallet)
        assert node.heard("gap or stuck")
        assert (node.counted(), node.nonce(wallet), len(wallet.receipts)) == (1, 2, 2)


def test_a_gap_is_filled() -> None:
    """The journal has nonces 1 and 2, the chain has none of the three: the first one was before the journal's time."""
    with pool() as node:
        count(node.wallet())
        wallet = node.wallet(journal=OutboxJournal(kept=10))
        for _ in range(2):
            count(wallet)
        node.order("anvil_reorg", 3, [])
        assert node.counted() == 0
        assert len(wallet.outbox.resume()) == 2
        assert node.heard("gap or stuck")
        assert (node.counted(), node.nonce(wallet)) == (2, 3)


def test_a_stuck_transaction_of_the_journal_is_raised_after_a_restart() -> None:
    with pool() as node:
        journal = OutboxJournal()
        first = node.wallet(journal=journal, patience=InclusionPolicy(2, 30, 0))
        node.steps = [node.halt] * 3
        with pytest.raises(OperationalError):
            count(first)
        node.steps = [node.crowd] * 5
        wallet = node.wallet(journal=journal)
        offered = wallet.policy.first(GWEI, GWEI)
        receipt = wallet.outbox.resume()[0]
        assert node.eth.get_transaction(receipt["transactionHash"])["maxPriorityFeePerGas"] > offered.tip * 5 // 4
        assert (node.counted(), node.nonce(wallet)) == (1, 1)


def test_a_call_that_became_wrong_while_it_waited_is_cancelled() -> None:
    with pool() as node:
        wallet, other = node.wallet(), node.wallet(b"\x08" * 32)

        def overtaken() -> None:
            node.drop(wallet)
            steps, node.steps = node.steps, []
            count(other, ONCE)
            node.steps = steps

        node.steps = [node.halt, overtaken]
        with pytest.raises(Reverted):
            count(wallet, ONCE)
        assert node.heard("is cancelled at nonce 0")
        assert (node.counted(ONCE), node.nonce(wallet)) == (1, 1)
        node.order("anvil_setStorageAt", ONCE, "0x0", "0x" + "00" * 32)
        refuse = ["0x0", "0x" + "00" * 31 + "01"]
        node.steps = [node.crowd, lambda: node.order("anvil_setStorageAt", ONCE, *refuse), node.crowd]
        with pytest.raises(Reverted):
            count(wallet, ONCE)
        assert node.heard("is cancelled at nonce 1")
        assert (node.nonce(wallet), wallet.receipts[-1]["to"]) == (2, wallet.address)


def test_what_is_done_is_not_done_again() -> None:
    with pool() as node:
        wallet = node.wallet()
        call = OutgoingCall("count", ONCE, data=b"\x01")
        assert wallet.outbox.send(call, lambda: node.counted(ONCE) == 1) is not None
        assert wallet.outbox.send(call, lambda: node.counted(ONCE) == 1) is None
        with pytest.raises(Reverted):
            count(wallet, ONCE)
        assert (node.counted(ONCE), node.nonce(wallet)) == (1, 1)


def test_somebody_else_uses_the_nonce() -> None:
    """Another machine with the same key: its transaction takes our nonce, ours is simulated again and gets the next."""
    with pool() as node:
        wallet, twin = node.wallet(), node.wallet()

        def taken() -> None:
            node.drop(wallet)
            transaction = {"to": ONCE, "data": "0x01", "gas": 100_000, "nonce": 0, "chainId": 31337}
            fees = {"maxFeePerGas": 9 * GWEI, "maxPriorityFeePerGas": 3 * GWEI}
            node.eth.send_raw_transaction(twin._signed({**transaction, **fees}))  # type: ignore[typeddict-item]  # fees
            node.mine()

        node.steps = [taken]
        count(wallet)
        assert node.heard("another transaction has taken nonce 0")
        assert (node.counted(), node.counted(ONCE), node.nonce(wallet)) == (1, 1, 2)


def test_a_call_that_came_second_says_what_the_contract_refuses() -> None:
    with pool() as node:
        wallet, rich = node.wallet(), node.eth.accounts[0]

        def faster() -> None:
            fees = {"maxFeePerGas": hex(900 * GWEI), "maxPriorityFeePerGas": hex(90 * GWEI)}
            node.order("eth_sendTransaction", {"from": rich, "to": ONCE, "gas": hex(100_000), **fees})
            node.mine()

        node.steps = [faster]
        with pytest.raises(Reverted, match="count was refused"):
            count(wallet, ONCE)
        assert node.heard("as where somebody else was faster")
        assert (node.counted(ONCE), node.nonce(wallet)) == (1, 1)


def test_a_call_that_writes_new_words_in_the_next_block_has_gas_for_them() -> None:
    """As two calls in one second that change a checkpoint, which the next second has to begin."""

    def words(value: int) -> None:
        for slot in range(4):
            node.order("anvil_setStorageAt", COUNTER, hex(slot), f"0x{value:064x}")

    with pool() as node:
        wallet = node.wallet()
        node.order("anvil_setCode", COUNTER, "0x" + "".join(f"600160{slot:02x}55" for slot in range(4)))
        words(1)
        node.mine()
        node.steps = [lambda: words(0), node.mine]
        assert count(wallet)["status"] == 1
        assert node.counted() == 1


def test_another_process_with_the_same_key_is_told() -> None:
    with pool() as node:
        wallet, twin = node.wallet(), node.wallet()
        count(wallet)
        count(wallet)
        assert not node.heard(STRANGER)
        count(twin)
        count(wallet)
        assert (node.counted(), node.told) == (4, [STRANGER])


def test_low_funds() -> None:
    with pool() as node:
        wallet = node.wallet()
        node.order("anvil_setBalance", wallet.address, hex(10**6))
        with pytest.raises(OperationalError, match=r"it needs [0-9]+ wei"):
            wallet.transfer(COUNTER, 10**6)
        assert wallet.journal.intents(IntentState.OPEN) == []
        node.order("anvil_setBalance", wallet.address, hex(10**20))
        count(wallet)
        assert (node.counted(), node.nonce(wallet)) == (1, 1)


def test_too_little_for_a_replacement_leaves_the_last_attempt() -> None:
    with pool() as node:
        wallet = node.wallet()
        node.steps = [
            lambda: node.order("anvil_setBalance", wallet.address, hex(160_000 * 3 * GWEI)),
            *[node.crowd] * 8,
        ]
        count(wallet)
        assert node.heard("refuses an attempt of count")
        assert (node.counted(), node.nonce(wallet)) == (1, 1)


def test_a_budget_for_the_whole_game() -> None:
    with pool() as node:
        wallet = node.wallet(policy=FeePolicy(cap=100 * GWEI))
        wallet.require(Budget(moves=40, gas=1_000_000, value=10**18))
        with pytest.raises(OperationalError, match=r"1100 moves of 1000000 gas.*Send it 10000000000000000000 wei"):
            wallet.require(Budget(moves=1100, gas=1_000_000))


def test_a_budget_pays_ten_times_the_fee_for_data_on_l1() -> None:
    with pool() as node:
        wallet, game = node.wallet(policy=FeePolicy(cap=100 * GWEI)), Budget(moves=10, gas=1_000_000, size=10_000)
        wallet.require(game)
        # A milliether for each of the 1,160 bytes of a transaction.
        node.order("anvil_setCode", ORACLE, "0x60043567" + (10**15).to_bytes(8, "big").hex() + "025f5260205ff3")
        with pytest.raises(
            OperationalError, match=r"116000000000000000000 wei may be .* Send it 17000000000000000000 wei"
        ):
            wallet.require(game)


def test_an_embedded_chain_says_that_money_is_short() -> None:
    wallet = Wallet.create(Connection.embedded(), b"\x05" * 32)
    for _ in range(2):
        with pytest.raises(OperationalError, match="cannot afford"):
            wallet.transfer(wallet.address, 5)


def test_a_resumption_that_failed_is_made_again_in_the_same_block(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else what a reorganization took would wait for the next block, and what depends on it would be decided first."""
    with pool() as node:
        wallet = node.wallet(journal=OutboxJournal(kept=10))
        count(wallet)
        node.order("anvil_reorg", 1, [])
        block = bytes(node.eth.get_block("latest")["hash"])
        with monkeypatch.context() as failing:
            failing.setattr(wallet.outbox, "_count", refuse)
            with pytest.raises(OperationalError, match="no answer"):
                wallet.outbox.resume(block)
        assert len(wallet.outbox.resume(block)) == 1
        assert node.counted() == 1


def refuse(block: str) -> int:
    raise OperationalError("no answer")
