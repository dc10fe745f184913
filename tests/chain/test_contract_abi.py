"""Calls, results and events of all contracts are coded as web3 does; what no contract can say is the node's fault."""

from random import Random
from typing import Any

import pytest
from eth_abi.abi import encode
from eth_utils.abi import collapse_if_tuple
from web3 import Web3
from web3.logs import STRICT

from memory_chain import MemoryChain
from pol.chain.contract.binding import Binding
from pol.chain.contract_abi import ContractAbi, artifact, contracts
from pol.chain.node.connection import Connection
from pol.errors import OperationalError

ADDRESS = Web3.to_checksum_address("0x" + "5a" * 20)


def drawn(entry: dict[str, Any], random: Random) -> Any:
    """A value of an argument."""
    kind: str = entry["type"]
    if kind.endswith("]"):
        size = kind[kind.rindex("[") + 1 : -1]
        inner = entry | {"type": kind[: kind.rindex("[")]}
        return [drawn(inner, random) for _ in range(int(size) if size else random.randrange(4))]
    if kind == "tuple":
        return tuple(drawn(each, random) for each in entry["components"])
    if kind == "address":
        return Web3.to_checksum_address(random.randbytes(20))
    if kind == "bool":
        return bool(random.randrange(2))
    if kind == "string":
        return random.choice(("", "pol", "\u00e9" * 40))
    if kind.startswith("bytes"):
        return random.randbytes(int(kind[5:]) if kind[5:] else random.randrange(100))
    bits = int(kind.removeprefix("u").removeprefix("int"))
    return random.choice((0, 1, random.getrandbits(bits - 1), (1 << (bits - (kind[0] == "i"))) - 1))


@pytest.fixture(scope="module")
def web3() -> Web3:
    return Web3(MemoryChain(), middleware=[])


@pytest.mark.parametrize("name", contracts())
def test_a_contract_is_coded_as_web3_does(web3: Web3, name: str) -> None:
    random, entries, abi = Random(name), artifact(name)["abi"], ContractAbi.of(name)
    theirs = web3.eth.contract(address=ADDRESS, abi=entries)
    for entry in (entry for entry in entries if entry["type"] == "function"):
        values = [drawn(each, random) for each in entry["inputs"]]
        call = abi.call(ADDRESS, entry["name"], *values)
        assert "0x" + call.data.hex() == theirs.encode_abi(entry["name"], values)
        told = theirs.decode_function_input(call.data)
        assert abi.arguments(call.data)[0] == told[0].fn_name
        assert list(abi.arguments(call.data)[1]) == list(told[1])
        results = [drawn(each, random) for each in entry["outputs"]]
        answer = encode([collapse_if_tuple(each) for each in entry["outputs"]], results)
        found = abi.result(entry["name"], answer)
        assert found == (results[0] if len(results) == 1 else tuple(results))
    for entry in (entry for entry in entries if entry["type"] == "event" and not entry["anonymous"]):
        shown = [drawn(each, random) for each in entry["inputs"]]
        rows = list(zip(entry["inputs"], shown, strict=True))
        signature = f"{entry['name']}({','.join(collapse_if_tuple(each) for each in entry['inputs'])})"
        topics = [bytes(Web3.keccak(text=signature))]
        topics += [encode([each["type"]], [value]) for each, value in rows if each["indexed"]]
        types = [collapse_if_tuple(each) for each in entry["inputs"] if not each["indexed"]]
        data = encode(types, [value for each, value in rows if not each["indexed"]])
        log: Any = {"address": ADDRESS, "topics": topics, "data": data, "logIndex": 0, "transactionIndex": 0}
        log |= {"transactionHash": bytes(32), "blockHash": bytes(32), "blockNumber": 1}
        (event,) = theirs.events[entry["name"]]().process_receipt({"logs": [log]}, errors=STRICT)  # type: ignore[typeddict-item]  # no more of a receipt is read
        assert abi.event(topics, data) == (entry["name"], dict(event["args"]))


def test_what_no_contract_can_say_is_the_fault_of_the_node(web3: Web3) -> None:
    """It ends no process: another node, or the same one later, is asked."""
    nobody = Binding(Connection(web3, "node"), ADDRESS, "TaskRegistry")
    with pytest.raises(OperationalError, match="is that contract at this address"):
        nobody.read("nonces", ADDRESS)
    abi = ContractAbi.of("TaskRegistry")
    for topics in ([], [bytes(32)]):
        with pytest.raises(OperationalError, match="no event of the contract"):
            abi.event(topics, b"")
    entry = next(each for each in artifact("TaskRegistry")["abi"] if each.get("name") == "TaskSubmitted")
    topic = bytes(Web3.keccak(text=f"TaskSubmitted({','.join(collapse_if_tuple(each) for each in entry['inputs'])})"))
    with pytest.raises(OperationalError, match="event TaskSubmitted can't be"):
        abi.event([topic], b"\1")
