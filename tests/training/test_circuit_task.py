"""A task of a circuit: its document names a network in place of a graph, and says nothing that isn't recomputed."""

import json
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from random import Random
from typing import Any

import numpy as np
import pytest
import rfc8785
from torch import nn

import pol
from circuit_steps import INTERVAL, STEPS, drawn_step
from digits_training import published as captured_task
from pol.commitments import canonical_json
from pol.commitments.keccak import keccak256
from pol.commitments.program_hash import program_hash
from pol.commitments.tensor import constants_root, state_root
from pol.errors import EvidenceError, Fault, PolError, ProtocolError, UnsupportedError
from pol.execution.stock_torch.torch_executor import NativeExecutor
from pol.roles.solver.solver import train_canonically
from pol.training.lineage.base_training import take_over
from pol.training.lineage.lineage import verify_lineage
from pol.training.storage.store import CorruptObjectError, Store
from pol.training.task import learning_proof, task_source, task_tensors
from pol.training.task.published_task import load, publish
from pol.training.task.task_document import TaskDocument
from pol.training.task.task_recorder import TaskRecorder
from pol.training.task.task_start import TaskStart
from pol.training.task.task_training import environment, tensors
from pol.verification.verdict.verdict import Outcome
from pol.zk.circuits import load_circuit
from pol.zk.fixed_point import integer_step, integers
from pol.zk.network import NetworkNode, NetworkOp, StepNetwork
from pol.zk.network_program import named_program
from pol.zk.step_data import network_step

HOSTILE = (-1, 0, 1, 3, 31, 32, 63, 64, 2**31, 2**32, 2**52, -(2**40), True, None, "x", [], {})


@cache
def published() -> tuple[Store, str]:
    store = Store("memory://circuit")
    digest, _ = publish(store, drawn_step(), steps=STEPS, interval=INTERVAL)
    return store, digest


@cache
def trained() -> tuple[Store, str]:
    """The digest of an exact training's learning proof."""
    store, digest = published()
    task = load(store, digest)
    recorder = TaskRecorder(store, task)
    train_canonically(task, recorder)
    return store, recorder.publish(environment(exact=True))[0]


def changed(change: Callable[[dict[str, Any]], object]) -> str:
    """The digest of the same document with some members changed."""
    store, digest = published()
    document = json.loads(store.get(digest))
    change(document)
    return store.put(rfc8785.dumps(document))


def stored(data: bytes) -> str:
    return published()[0].put(data)


def refused(digest: str, problem: str, error: type[Exception] = ProtocolError) -> None:
    with pytest.raises(error, match=problem):
        load(published()[0], digest)


def test_its_document_names_the_network() -> None:
    store, digest = published()
    task, network = load(store, digest), load_circuit("linear_regression").network
    document = json.loads(store.get(digest))
    assert document["network"] == network.digest.hex()
    assert (document["version"], "aten" in document) == (2, False)
    assert TaskDocument.decode(task.document.encode()) == task.document
    assert task.source == network
    assert (task.names.slots, task.names.constants) == (("theta",), ("x", "y"))
    assert task.names.nodes[-2].source == "network node 16: concat of 15, 14"
    step = drawn_step()
    assert all(np.array_equal(a, b) for a, b in zip(task.constants, step.constants, strict=True))
    assert np.array_equal(task.initial_state[0], step.state[0])


def test_an_exact_training_of_it_is_verified() -> None:
    store, proof = trained()
    assert pol.verify(store, proof).verdict.outcome is Outcome.ACCEPTED


def test_it_has_no_order_table() -> None:
    store, digest = trained()
    proof, task = learning_proof.decode(store, digest), load(*published())
    assert proof.order_root == task.order_root == bytes(32)
    with pytest.raises(EvidenceError, match="another order"):
        learning_proof.require_proof_of(replace(proof, order_root=b"\1" * 32), task)


def test_stock_torch_does_not_take_it() -> None:
    store, proof = trained()
    task = load(*published())
    for native in (
        lambda: NativeExecutor(task.aten),
        lambda: tensors(task),
        lambda: take_over(nn.Linear(4, 1), store, proof),
    ):
        with pytest.raises(ProtocolError, match=r"are a circuit's, and stock torch can't take them: train.* exactly"):
            native()


def test_it_continues_another_ones_training() -> None:
    store, proof = trained()
    first = learning_proof.load_checkpoint(
        store, load(*published()), learning_proof.decode(store, proof).checkpoints[-1]
    )
    start = TaskStart(proof=proof, slots={"theta": "theta"})
    digest, _ = publish(store, replace(drawn_step(), state=first), steps=STEPS, interval=INTERVAL, start=start)
    assert [level.document for level in verify_lineage(store, digest)] == [digest, published()[1]]
    with pytest.raises(EvidenceError, match="slot theta isn't theta at the end of the base"):
        publish(store, drawn_step(), steps=STEPS, interval=INTERVAL, start=start)


def test_graph_and_network_are_one_source() -> None:
    refused(changed(lambda d: d.update(aten=d["network"])), "names aten and network: its program is made from aten or")
    refused(changed(lambda d: d.pop("network")), "names no source")
    refused(
        changed(lambda d: d.update(aten=d.pop("network"))), "lowering of the ATen graph has the format version None"
    )
    store, digest = captured_task()
    document = json.loads(store.get(digest))
    document["network"] = document.pop("aten")
    with pytest.raises(ProtocolError, match="not a network"):
        load(store, store.put(rfc8785.dumps(document)))


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (
            lambda d: d.update(network=stored(load_circuit("momentum").network.to_json())),
            "network doesn't lower to its",
        ),
        (lambda d: d.update(steps=STEPS + INTERVAL), "network doesn't lower to its"),
        (lambda d: d.update(names=stored(rfc8785.dumps(_other_names()))), "names aren't those of its network"),
        (lambda d: d.update(work="1"), "work estimate is wrong"),
        (lambda d: d.update(version=3), "version 2"),
    ],
)
def test_a_false_member_is_noticed(change: Callable[[dict[str, Any]], object], problem: str) -> None:
    refused(changed(change), problem)


def _other_names() -> dict[str, Any]:
    return replace(load(*published()).names, slots=("weights",)).to_dict()


def test_another_writing_of_the_network_is_refused() -> None:
    document = json.loads(load_circuit("linear_regression").network.to_json())
    for other, problem in (
        (json.dumps(document).encode(), "isn't canonical"),
        (rfc8785.dumps({**document, "name": "x"}), "has unknown fields"),
        (rfc8785.dumps({**document, "scale": True}), "the scale is an integer"),
        (rfc8785.dumps({**document, "inputs": ["theta", "x", 3]}), "inputs have names"),
        (rfc8785.dumps({**document, "inputs": ["theta", "x", "x"]}), "different names"),
        (b"[" * 100_000, "nested deeper"),
    ):
        digest = stored(other)
        refused(changed(lambda d, digest=digest: d.update(network=digest)), problem)


@pytest.mark.parametrize(
    ("circuit", "program", "names"),
    [
        ("linear_regression", "210dd652edbb16fa", "cbd751c2aef535e0"),
        ("lora", "ed778fb3cb39bbf4", "4fe941c7352e61cc"),
        ("mlp", "716db8a2b8b7a993", "4fbb07123947f028"),
        ("momentum", "4ddb85b88bf804cb", "bd3dc75c5f6b6b0d"),
    ],
)
def test_a_network_has_the_same_program_forever(circuit: str, program: str, names: str) -> None:
    """Else tasks that are published couldn't be read any more."""
    made, named = named_program(load_circuit(circuit).network, 10)
    assert program_hash(made).hex().startswith(program)
    assert keccak256(canonical_json.encode(named.to_dict())).hex().startswith(names)


def test_a_network_has_a_greatest_length() -> None:
    long = stored(bytes(task_source.NETWORK_LIMIT + 1))
    refused(changed(lambda d: d.update(network=long)), "bytes expected at most", CorruptObjectError)


def test_a_network_without_a_program_is_refused() -> None:
    other = stored(load_circuit("transformer").network.to_json())
    refused(
        changed(lambda d: d.update(network=other)), "the program has no constant of several numbers", UnsupportedError
    )


@pytest.mark.parametrize("number", [0.3, -0.0, 8.0, -8.0, 2.0**-30, np.inf, np.nan, "signaling NaN"])
@pytest.mark.parametrize("member", ["constants", "initial_state"])
def test_numbers_that_the_circuit_does_not_take(member: str, number: float | str) -> None:
    """Their roots are right, so that nothing but the numbers is wrong."""
    store, digest = published()
    task = load(store, digest)
    is_data = member == "constants"
    types, names, kept = (
        (list(task.program.constants), task.names.constants, task.constants)
        if is_data
        else (task.slot_types, task.names.slots, task.initial_state)
    )
    words = [each.copy() for each in kept]
    words[-1].reshape(-1)[0] = 0x7FA00000 if isinstance(number, str) else np.float32(number).view(np.uint32)
    root = constants_root(types, words) if is_data else state_root(types, words)
    object_ = store.put(task_tensors.encode(names, types, words))
    refused(
        changed(lambda d: d.update({member: object_, f"{member}_root": root.hex()})),
        f"{'y' if is_data else 'theta'} holds a number that isn't one of 24 bits at the scale 20",
    )
    step = drawn_step()
    with pytest.raises(EvidenceError, match="isn't one of 24 bits") as caught:
        publish(store, replace(step, **{"constants" if is_data else "state": words}), steps=STEPS, interval=INTERVAL)
    assert caught.value.fault is Fault.WRONG_DATA


def test_data_of_other_sizes() -> None:
    store, _ = published()
    short = drawn_step(steps=STEPS - INTERVAL)
    file = task_tensors.encode(short.names.constants, short.program.constants, short.constants)
    refused(changed(lambda d: d.update(constants=store.put(file))), "tensor x is")
    with pytest.raises(EvidenceError, match=f"aren't those of {STEPS} steps"):
        publish(store, short, steps=STEPS, interval=INTERVAL)


def test_a_step_has_the_inputs_of_its_network() -> None:
    network = load_circuit("linear_regression").network
    theta, x, y = (integers([0] * node.size, node.shape) for node in network.nodes[:3])
    step = network_step(network, theta, [[x, y]])
    assert integer_step(network, [theta, x, y]).shape == step.state[0].shape
    with pytest.raises(ProtocolError, match=r"step 1 has inputs of the shapes .* the network wants theta \(1, 5\), x"):
        network_step(network, theta, [[x, y], [y, x]])
    with pytest.raises(ProtocolError, match="theta holds a number of more than 24 bits"):
        network_step(network, theta + (1 << 23), [[x, y]])
    with pytest.raises(ProtocolError, match="one step or more"):
        network_step(network, theta, [])


def test_hostile_networks_are_refused_by_an_error_of_ours() -> None:
    """Numbers, operations and fields that no circuit has: a reader neither breaks nor takes long."""
    random, read = Random(5), 0
    for _ in range(1500):
        document = json.loads(load_circuit(random.choice(["linear_regression", "mlp"])).network.to_json())
        for _ in range(random.choice([1, 1, 2])):
            node = random.choice(document["nodes"])
            name = random.choice(["shape", "operands", "bits", "axis", "begin", "kind", "values"])
            if name == "kind":
                node[name] = str(random.choice(list(NetworkOp)))
            elif isinstance(node.get(name), list) and node[name]:
                node[name][random.randrange(len(node[name]))] = random.choice([*HOSTILE, *range(12)])
            else:
                node[name] = random.choice(HOSTILE)
        try:
            network = StepNetwork.from_json(rfc8785.dumps(document))
            named_program(network, random.choice([1, 1000, 2**32 - 1]))[0].to_bytes()
            read += 1
        except PolError:
            pass
    assert read > 10


def test_what_a_word_does_not_hold_has_no_program() -> None:
    first, data = NetworkNode(NetworkOp.INPUT, (1, 4)), NetworkNode(NetworkOp.INPUT, (1, 4))
    constant = NetworkNode(NetworkOp.CONSTANT, (1,), values=(1 << 40,))

    def written(*nodes: NetworkNode) -> None:
        named_program(StepNetwork(20, ("theta", "x"), (first, data, *nodes)), 1)

    with pytest.raises(UnsupportedError, match=r"node 2 \(constant\): numbers may have more than 31 bits"):
        written(constant, NetworkNode(NetworkOp.GATE, (1, 4), (0, 2)))
    far = NetworkNode(NetworkOp.SHIFT, (1, 4), (0,), bits=40)
    with pytest.raises(UnsupportedError, match=r"node 3 \(reshape\): 40 bits are more"):
        written(far, NetworkNode(NetworkOp.RESHAPE, (1, 4), (2,)))
    with pytest.raises(ProtocolError, match="divides by"):
        written(replace(far, bits=64), NetworkNode(NetworkOp.RESHAPE, (1, 4), (2,)))
    with pytest.raises(ProtocolError, match="has no dimension 2"):
        written(NetworkNode(NetworkOp.SUM, (1, 4), (0,), axis=2))
    wide = NetworkNode(NetworkOp.INPUT, (1, 4097))
    square = NetworkNode(NetworkOp.INPUT, (4097, 1))
    product = NetworkNode(NetworkOp.MATMUL, (1, 1), (0, 1))
    spread = NetworkNode(NetworkOp.ADD, (1, 4097), (0, 2))
    with pytest.raises(UnsupportedError, match="it sums 4097 products, 4096 at most"):
        named_program(StepNetwork(20, ("theta", "x"), (wide, square, product, spread)), 1)
