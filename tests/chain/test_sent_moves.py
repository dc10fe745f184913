"""Moves read back from transactions: a dispute played on the embedded chain, and `pol explain` on a real node."""

import json
from collections.abc import Iterator, Sequence
from random import Random

import pytest

import toy_market
from cli_runner import pol
from dispute_harness import replay_claim
from lab.disputes import dispute_match
from pol.chain.court.move_from_transaction import sent_move
from pol.commitments.program_hash import program_header
from pol.demo.lying_players import LyingTrace, draw_lie
from pol.dispute.encoding.move_encoding import FUNCTIONS, encode
from pol.dispute.moves import Move
from pol.dispute.play.execution_evidence import SegmentTrace
from pol.dispute.play.honest_players import ReplayPlayer
from pol.dispute.position import Position, Side
from pol.errors import OperationalError, ProtocolError
from shared_chain import SharedChain
from toy_market import ToyMarket

Sent = tuple[bytes, Position, Move]


def played(toy: ToyMarket, liar: SegmentTrace) -> list[Sent]:
    """The transaction, the position and the move, for every move of a dispute; the last one decides it."""
    dispute = toy.challenge(ReplayPlayer(toy.honest))
    players = {
        Side.ASSERTER: ("verifier", ReplayPlayer(liar)),
        Side.CHALLENGER: ("whistleblower", ReplayPlayer(toy.honest)),
    }
    sent: list[Sent] = []
    while toy.game.winner(dispute) is Side.NONE:
        position = toy.game.standing(dispute, toy.honest.program).position
        name, player = players[position.turn]
        move = player.move(position)
        receipt = toy.game.send(toy.wallets[name], dispute, position, move)
        assert receipt is not None
        sent.append((bytes(receipt["transactionHash"]), position, move))
    return sent


def lying(ground: toy_market.Ground, nodes: Sequence[int]) -> tuple[ToyMarket, SegmentTrace]:
    """A verdict with a lie in one of these nodes that a proof ends: of other lies the liar gives up the defense."""
    lies: list[SegmentTrace] = []

    def lie(honest: SegmentTrace) -> SegmentTrace:
        header = program_header(honest.program)
        for node in nodes:
            liar = LyingTrace(honest, draw_lie(honest, [node], Random(node)))
            if dispute_match.play(replay_claim(honest, liar), header, ReplayPlayer(liar), ReplayPlayer(honest)).refuted:
                lies.append(liar)
                return liar
        raise AssertionError(f"no proof ends a lie in the nodes {nodes}")

    return toy_market.at_verdict(ground, lie), lies[0]


@pytest.fixture(scope="module")
def dispute(node_chain: SharedChain) -> Iterator[tuple[ToyMarket, list[Sent]]]:
    with toy_market.lent(node_chain) as ground:
        toy, liar = lying(ground, range(7))
        yield toy, played(toy, liar)


def test_every_move_of_a_dispute_is_read_back(dispute: tuple[ToyMarket, list[Sent]]) -> None:
    toy, sent = dispute
    assert {FUNCTIONS[type(move)] for _, _, move in sent} >= {"answer", "describe", "proveStep"}
    for number, (transaction, position, move) in enumerate(sent):
        found = sent_move(toy.connection, [toy.game], transaction)
        assert (found.move.function, found.move.dispute) == (FUNCTIONS[type(move)], 1)
        assert (found.move.levels, found.move.frame) == ((position.level,), position.facts.frame)
        assert (found.game, found.reverted) == (toy.game.address, False)
        assert found.sender == toy.wallets["verifier" if number % 2 == 0 else "whistleblower"].address
    assert found.move.rest["claimed"] != found.move.rest["computed"]


def test_a_transaction_that_is_no_move_is_named(dispute: tuple[ToyMarket, list[Sent]]) -> None:
    toy, _ = dispute
    transaction = bytes(toy.market.vault.deposit(toy.wallets["submitter"], 1)["transactionHash"])
    with pytest.raises(ProtocolError, match=f"is no move: it calls {toy.market.vault.address}"):
        sent_move(toy.connection, [toy.game], transaction)
    with pytest.raises(OperationalError, match="knows no transaction 0x0101"):
        sent_move(toy.connection, [toy.game], b"\x01" * 32)


def test_other_calls_of_the_game_are_no_moves(dispute: tuple[ToyMarket, list[Sent]]) -> None:
    toy, _ = dispute
    web3 = toy.connection.web3
    data = toy.game.function("timeout", 1).data
    call = {"from": web3.eth.accounts[0], "to": toy.game.address, "data": data, "gas": 100_000}
    transaction = bytes(web3.eth.send_transaction(call))  # type: ignore[arg-type]
    with pytest.raises(ProtocolError, match="no move of a dispute begins with"):
        sent_move(toy.connection, [toy.game], transaction)


@pytest.fixture(scope="module")
def on_a_node(
    dispute: tuple[ToyMarket, list[Sent]], tmp_path_factory: pytest.TempPathFactory
) -> tuple[ToyMarket, list[Sent], tuple[str, ...]]:
    (toy, sent), folder = dispute, tmp_path_factory.mktemp("explained")
    document = folder / "deployment.json"
    document.write_text(toy.deployment.to_json())
    return toy, sent, ("--deployment", str(document), "--rpc", toy.connection.name, "--store", str(folder / "store"))


def test_a_transaction_is_explained(on_a_node: tuple[ToyMarket, list[Sent], tuple[str, ...]]) -> None:
    toy, sent, place = on_a_node
    for transaction, position, move in sent:
        said = pol("explain", f"0x{transaction.hex()}", *place)
        function, level = FUNCTIONS[type(move)], position.level.name
        assert said.code == 0, said.out
        assert said.out.startswith(f"{function} in dispute 1, at {level}: ")
        assert f"frame    0x{position.facts.frame.hex()}\n" in said.out
        assert f"to {toy.game.address}, in block " in said.out
        document = json.loads(pol("explain", transaction.hex(), *place, "--json").out)
        assert (document["function"], document["levels"]) == (function, [level.lower()])
        assert document["frame"] == "0x" + position.facts.frame.hex()
    assert document["rest"]["claimed"] != document["rest"]["computed"]
    assert document["rest"]["operation"] in said.out


def test_calldata_is_explained(on_a_node: tuple[ToyMarket, list[Sent], tuple[str, ...]]) -> None:
    _, sent, place = on_a_node
    _, position, move = sent[-1]
    data = encode(1, position, move)
    shown = json.loads(pol("explain", "0x" + data.hex(), *place, "--json").out)
    assert shown["function"] == "proveStep"
    assert "sender" not in shown
    assert pol("explain", "0x" + data[:-1].hex(), *place).code == 1


@pytest.mark.parametrize(
    ("what", "told"),
    [
        ("0x" + "ab" * 32, "knows no transaction 0xabab"),
        ("0x" + "ab" * 40, "no move of a dispute begins with 0xabababab"),
        ("0x" + "ab" * 40 + "a", "two digits a byte"),
    ],
)
def test_what_is_no_move_is_said(
    on_a_node: tuple[ToyMarket, list[Sent], tuple[str, ...]], what: str, told: str
) -> None:
    said = pol("explain", what, *on_a_node[2])
    assert said.code != 0
    assert told in " ".join(said.out.split())


def test_a_move_that_the_contract_refused_is_explained_as_well(
    on_a_node: tuple[ToyMarket, list[Sent], tuple[str, ...]],
) -> None:
    toy, sent, place = on_a_node
    web3, (_, position, move) = toy.connection.web3, sent[0]
    data = "0x" + encode(1, position, move).hex()
    call = {"from": web3.eth.accounts[0], "to": toy.game.address, "data": data, "gas": 300_000}
    transaction = web3.eth.send_transaction(call)  # type: ignore[arg-type]
    said = pol("explain", "0x" + bytes(transaction).hex(), *place)
    assert said.code == 0, said.out
    assert "The contract refused it" in said.out
