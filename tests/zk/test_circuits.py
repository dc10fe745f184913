"""Every circuit: its network is its step's and torch's; EZKL, rows and program agree, within the bounds of rounding."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from random import Random
from unittest.mock import patch

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.nn import functional

import chosen_rows
from lab.benchmarks.zk_proofs import float_error
from pol.errors import OperationalError, ProtocolError, UnsupportedError
from pol.execution.reference import ReferenceExecutor
from pol.zk import fixed_point, native_process, step_functions
from pol.zk.bn254 import from_field, to_field
from pol.zk.circuits import Visibility, example_vectors, folder, load_circuit, names
from pol.zk.exact.circuit import constraints
from pol.zk.ezkl.error_bound import error_bound, is_within
from pol.zk.ezkl.onnx_file import onnx_file
from pol.zk.fixed_point import Integers, dequantize, integer_step, integers, quantize, rescale
from pol.zk.network import NetworkNode, NetworkOp, StepNetwork
from pol.zk.network_program import step_program
from pol.zk.tracing import network_of

EXACT = ("linear_regression", "logistic_regression", "lora", "mlp", "momentum", "softmax_stable")


@pytest.mark.parametrize("name", names())
def test_the_network_is_that_of_the_step(name: str) -> None:
    """python -m pol.zk.tracing writes it."""
    assert network_of(folder() / name) == load_circuit(name).network


@pytest.mark.parametrize("name", names())
def test_integers_are_near_float32(name: str) -> None:
    circuit = load_circuit(name)
    for seed in range(3):
        inputs = example_vectors(circuit, seed)
        greatest, relative = float_error(name, inputs, integer_step(circuit.network, inputs))
        assert greatest < 2e-5
        assert relative < 1e-5


@pytest.mark.parametrize("name", chosen_rows.named(names(), "linear_regression", "mlp", others=pytest.mark.long))
def test_ezkl_computes_the_integer_rule(name: str, tmp_path: Path) -> None:
    """Its own witness, number by number: no unit of the last place is between them."""
    pytest.importorskip("ezkl")
    circuit = load_circuit(name)
    (tmp_path / "m.onnx").write_bytes(onnx_file(circuit.network))
    at = {key: str(tmp_path / key) for key in ("m.onnx", "s.json", "m.ezkl", "i.json", "w.json")}
    given = {"scale": circuit.network.scale, "base": circuit.base, "legs": circuit.digits, "logrows": 20}
    native_process.call("settings", None, model=at["m.onnx"], out=at["s.json"], visibility="public", **given)
    native_process.call("compile_circuit", None, model=at["m.onnx"], settings=at["s.json"], out=at["m.ezkl"])
    for seed in range(2):
        inputs = example_vectors(circuit, seed)
        elements = [[to_field(int(x)).to_bytes(32, "little").hex() for x in array.ravel()] for array in inputs]
        (tmp_path / "i.json").write_text(json.dumps({"input_data": elements}))
        request = {"inputs": at["i.json"], "circuit": at["m.ezkl"], "out": at["w.json"]}
        native_process.call("witness", None, **request, verification_key=None, reference_string=None)
        (outputs,) = json.loads((tmp_path / "w.json").read_bytes())["outputs"]
        found = [from_field(int.from_bytes(bytes.fromhex(element), "little")) for element in outputs]
        assert found == list(integer_step(circuit.network, inputs).ravel())


@pytest.mark.parametrize("name", chosen_rows.first(EXACT, 3, others=pytest.mark.long))
def test_rows_are_solved_by_the_rule_and_by_nothing_near_it(name: str) -> None:
    circuit = load_circuit(name)
    system = constraints(circuit.network, example_vectors(circuit, 1), context=7)
    system.check()
    assert system.rows == constraints(circuit.network).rows
    # Any variable that is moved breaks a row; a sample of them, the public ones among it.
    places = [*range(1, system.public), *range(system.public, len(system.values), len(system.values) // 40)]
    readers: dict[int, list[int]] = {}
    for number, row in enumerate(system.rows):
        for terms in row:
            for place in terms:
                readers.setdefault(place, []).append(number)
    for place in places:
        moved = replace(system, values=[*system.values])
        moved.values[place] += 1
        touched = replace(moved, rows=[system.rows[number] for number in readers[place]])
        with pytest.raises(ProtocolError, match="no solution"):
            touched.check()


@pytest.mark.parametrize("name", EXACT)
def test_the_court_executes_the_same_integers(name: str) -> None:
    network, steps = load_circuit(name).network, 3
    inputs = [example_vectors(load_circuit(name), seed) for seed in range(steps)]
    data = [np.concatenate([given[place] for given in inputs]) for place in range(1, len(network.inputs))]
    executor = ReferenceExecutor(step_program(network, steps), [words(array, network.scale) for array in data])
    theta, state = inputs[0][0], [words(inputs[0][0], network.scale)]
    for number, given in enumerate(inputs):
        theta = integer_step(network, [theta, *given[1:]])
        state, _ = executor.advance(state, number)
        assert np.array_equal(state[0], words(theta, network.scale))


@pytest.mark.parametrize(
    ("name", "why"), [("adamw", "more than 31 bits"), ("transformer", "no constant of several numbers")]
)
def test_what_has_no_program_is_said(name: str, why: str) -> None:
    with pytest.raises(UnsupportedError, match=why):
        step_program(load_circuit(name).network, 1)


def test_a_number_out_of_range_has_no_exact_proof() -> None:
    circuit = load_circuit("linear_regression")
    theta, x, y = example_vectors(circuit, 1)
    with pytest.raises(ProtocolError, match="leaves the range of 24 bits"):
        constraints(circuit.network, [theta + (8 << 20), x, y])


def test_ties_go_away_from_zero() -> None:
    assert list(rescale(integers([3, -3, 2, -2, 1, -1, 5, -5], (8,)), 1)) == [2, -2, 1, -1, 1, -1, 3, -3]
    assert list(quantize([0.5, -0.5, 1.5, -1.5, 0.25], 0)) == [1, -1, 2, -2, 0]


def test_strangers_networks_are_read_strictly() -> None:
    data = load_circuit("mlp").network.to_json()
    assert StepNetwork.from_json(data).to_json() == data
    for bad in (b"{}", b"[]", b"x", data[:-1], data.replace(b'"scale":20', b'"scale":99'), data + b" "):
        with pytest.raises(ProtocolError):
            StepNetwork.from_json(bad)
    with pytest.raises(ProtocolError, match="another shape"):
        StepNetwork(20, ("theta",), (NetworkNode(NetworkOp.INPUT, (1, 2)), NetworkNode(NetworkOp.SLICE, (1, 1), (0,))))


def test_a_circuit_that_is_not_there_is_said() -> None:
    with pytest.raises(OperationalError, match="there is no circuit nothing; pol has adamw"):
        load_circuit("nothing")
    with pytest.raises(ProtocolError, match="made for hashed, public, not for polycommit"):
        load_circuit("mlp").logrows_of(Visibility.COMMITTED)


def words(vector: Integers, scale: int) -> np.ndarray:
    return dequantize(vector, scale).astype(np.float32).view(np.uint32)


def gradient(of: Callable[[Tensor], Tensor], z: Tensor) -> Tensor:
    """Of a loss, by autograd, at z."""
    z = z.clone().requires_grad_()
    (found,) = torch.autograd.grad(of(z), z)
    return found


@pytest.mark.parametrize(("width", "near"), [(1.0, 1e-4), (2.0, 2e-3), (4.0, 2e-2)])
def test_the_gradients_are_torchs(width: float, near: float) -> None:
    generator = torch.Generator().manual_seed(1)
    z = (torch.rand(64, 5, generator=generator, dtype=torch.float64) * 2 - 1) * width
    labels = functional.one_hot(torch.arange(64) % 5, 5).to(torch.float64)
    weight = torch.rand(64, 5, generator=generator, dtype=torch.float64)

    def same(ours: Callable[[Tensor], Tensor], theirs: Callable[[Tensor], Tensor]) -> None:
        torch.testing.assert_close(ours(z), theirs(z), rtol=0, atol=near * 64)
        torch.testing.assert_close(gradient(ours, z), gradient(theirs, z), rtol=0, atol=near)

    same(
        lambda z: step_functions.cross_entropy(z, labels),
        lambda z: functional.cross_entropy(z, labels, reduction="sum"),
    )
    same(
        lambda z: step_functions.binary_cross_entropy(z, labels),
        lambda z: functional.binary_cross_entropy_with_logits(z, labels, reduction="sum"),
    )
    same(lambda z: (step_functions.softmax(z) * weight).sum(), lambda z: (torch.softmax(z, -1) * weight).sum())


def test_what_a_mask_hides_has_no_part() -> None:
    z, mask = torch.rand(4, 4, dtype=torch.float64), torch.ones(4, 4, dtype=torch.float64).tril()
    hidden = z.masked_fill(mask == 0, -torch.inf)
    torch.testing.assert_close(step_functions.softmax(z, mask), torch.softmax(hidden, -1), rtol=0, atol=1e-4)
    assert (gradient(lambda z: (step_functions.softmax(z, mask) * z.detach()).sum(), z)[mask == 0] == 0).all()


def test_far_below_zero_the_exponential_stays_small_and_positive() -> None:
    z = torch.linspace(-100, 4, 1000, dtype=torch.float64)
    powers = step_functions.exponential(z)
    assert (powers.diff() >= 0).all()
    assert 1e-4 < float(powers[0]) < 2e-4


@pytest.mark.parametrize("width", [0.0, 1.0, 8.0, 100.0])
def test_logits_of_any_size(width: float) -> None:
    generator = torch.Generator().manual_seed(2)
    z = (torch.rand(64, 7, generator=generator, dtype=torch.float64) * 2 - 1) * width
    labels = functional.one_hot(torch.arange(64) % 7, 7).to(torch.float64)
    torch.testing.assert_close(step_functions.greatest(z), z.max(-1, keepdim=True).values)
    found = gradient(lambda z: step_functions.stable_cross_entropy(z, labels), z)
    expected = gradient(lambda z: functional.cross_entropy(z, labels, reduction="sum"), z)
    torch.testing.assert_close(found, expected, rtol=0, atol=2.5e-5)


@pytest.mark.parametrize("name", [name for name in names() if not name.endswith("_large")])
def test_floor_or_ceiling_of_every_rounding(name: str) -> None:
    circuit, random = load_circuit(name), Random(1)
    inputs = example_vectors(circuit, 1)
    honest = integer_step(circuit.network, inputs)

    def chosen(exact: Integers, bits: int) -> Integers:
        if bits == 0:
            return exact
        choices = integers([random.choice((x >> bits, -(-x >> bits))) for x in exact.ravel()], exact.shape)
        return np.asarray(choices)

    limit = error_bound(circuit.network, inputs, honest)
    assert is_within(circuit.network, inputs, honest)
    assert limit < 1 << 14
    for _ in range(3):
        with patch.object(fixed_point, "rescale", chosen):
            dishonest = integer_step(circuit.network, inputs)
        assert is_within(circuit.network, inputs, dishonest)
        assert abs(dishonest - honest).max() <= limit
    # Twice the learning rate is no rounding.
    assert not is_within(circuit.network, inputs, 2 * honest - inputs[0])
