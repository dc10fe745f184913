"""Commands that send, on a node that gives receipts late: each has one effect."""

import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import pol as pol_package
import toy_market
from cli_runner import Said, pol
from misbehaving_nodes import Gateway, Pass, gateway
from pol.chain.node.connection import Connection
from pol.cli.market import stake
from pol.commitments.keccak import keccak256
from pol.demo import digits
from pol.errors import OperationalError
from pol.submission import submission
from pol.submission.market_place import MarketPlace
from shared_chain import SharedChain
from toy_market import Ground

POL = Path(pol_package.__file__).parent
SECONDS = 0.4
"""Age of a transaction at which its receipt is given: three polls take 0.14."""


class LateReceipts:
    """A manner of a gateway; counts the transactions that it passes on."""

    def __init__(self) -> None:
        self.sent: dict[str, float] = {}

    def __call__(self, method: str, params: list[Any], node: Pass) -> Any:
        answer = node(method, params)
        if method == "eth_sendRawTransaction":
            self.sent[answer] = time.monotonic()
        late = method == "eth_getTransactionReceipt" and time.monotonic() < self.sent.get(params[0], 0) + SECONDS
        return None if late else answer


@pytest.fixture
def ground(chain: SharedChain) -> Iterator[Ground]:
    with toy_market.lent(chain) as ground:
        yield ground


@pytest.fixture
def late(ground: Ground) -> Iterator[Gateway]:
    with gateway(ground.connection.name, LateReceipts()) as proxy:
        yield proxy


def test_every_verb_of_stake_sends_once(
    ground: Ground, late: Gateway, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    document, key = tmp_path / "deployment.json", keccak256(b"verifier")
    document.write_text(ground.deployment.to_json())
    monkeypatch.setenv("OPERATOR_KEY", key.hex())
    place = ("--deployment", document, "--rpc", late.url, "--store", tmp_path, "--key-env", "OPERATOR_KEY")
    address, vault = ground.wallets["verifier"].address, ground.market.vault
    tickets, free = ground.market.sortition.tickets_now(address), vault.free(address)
    for verb in (("deposit", "2"), ("withdraw", "1"), ("donate", "1"), ("enrol",), ("resign",)):
        # The gas of a ticket depends on whether another one came in the same second.
        ground.connection.wait_until(ground.connection.now())
        assert pol("stake", *verb, *place) == Said(0), verb
    assert len(late.manner.sent) == 5  # type: ignore[attr-defined]  # of this manner
    assert ground.market.sortition.tickets_now(address) == tickets
    assert vault.free(address) == free - ground.market.sortition.unit()  # deposit, withdrawal and gift cancel out


def test_a_withdrawal_is_told_by_the_command_that_is_started_again(
    ground: Ground, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Though less is free by now than it takes."""
    document, key = tmp_path / "deployment.json", keccak256(b"verifier")
    document.write_text(ground.deployment.to_json())
    monkeypatch.setenv("OPERATOR_KEY", key.hex())
    place = ("--deployment", document, "--rpc", ground.connection.name, "--store", tmp_path)
    address, vault, show = ground.wallets["verifier"].address, ground.market.vault, stake._show
    free = vault.free(address)

    def killed(*about: object) -> None:
        raise OperationalError("killed before it told")

    for told, code in ((killed, 3), (show, 0)):
        monkeypatch.setattr(stake, "_show", told)
        said = pol("stake", "withdraw", f"{free - 1}wei", *place, "--key-env", "OPERATOR_KEY")
        assert (said.code, vault.free(address)) == (code, 1)


@pytest.mark.rules
def test_every_command_that_has_a_wallet_keeps_a_journal() -> None:
    """And nothing but the outbox sends a signed transaction."""
    texts = {file.relative_to(POL).as_posix(): file.read_text() for file in POL.rglob("*.py")}
    senders = {name for name, text in texts.items() if "send_raw_transaction" in text}
    assert senders == {"chain/account/outbox.py"}
    wallets = {name: text for name, text in texts.items() if name.startswith("cli/") and re.search(r"\bWallet\(", text)}
    assert wallets.keys() >= {"cli/market/stake.py", "cli/zk/zk.py"}
    assert {name for name, text in wallets.items() if "wallet.once()" not in text} == set()


@pytest.mark.long
def test_a_task_is_submitted_once(ground: Ground, late: Gateway, tmp_path: Path) -> None:
    model = digits.DigitClassifier(4)
    made = (model, digits.loss_function, digits.build_optimizer(model), digits.dataset())
    signer = ground.wallets["submitter"].signer
    place = MarketPlace(Connection.to(late.url), ground.deployment, f"file://{tmp_path}", tmp_path / "notes", signer)
    sent = submission.submit(made, 1, place, steps=20, interval=10, draws=1)
    assert [bytes(event["taskId"]) for event in ground.market.registry.events("TaskSubmitted")] == [sent.task_id]
    assert len(late.manner.sent) == 1  # type: ignore[attr-defined]  # of this manner
