"""Proofs of gradient steps: what they cost, what they show, and how far they are from float32."""

import tempfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from eth_abi.abi import encode
from hexbytes import HexBytes
from web3.types import Wei

from anvil_node import anvil_node
from lab.benchmarks.figure import Figure
from pol.chain.account.wallet import Wallet
from pol.chain.court.step_verifiers import StepVerifier, deploy_exact, deploy_generated
from pol.chain.node.connection import Connection
from pol.commitments.keccak import keccak256
from pol.zk.circuits import Visibility, example_vectors, folder, load_circuit
from pol.zk.exact import exact_prover
from pol.zk.exact.circuit import constraints
from pol.zk.ezkl import ezkl_prover
from pol.zk.ezkl.gradient_proof import GradientProof
from pol.zk.ezkl.keys import Keys, bytecode, compiler, setup
from pol.zk.fixed_point import Integers, dequantize, integer_step
from pol.zk.tracing import step_module

_VERIFY = keccak256(b"verifyProof(bytes,uint256[])")[:4]
MEASURED: dict[str, tuple[str, Visibility]] = {
    "linear_regression": ("linear_regression", Visibility.HASHED),
    "logistic_regression": ("logistic_regression", Visibility.HASHED),
    "lora": ("lora", Visibility.HASHED),
    "momentum": ("momentum", Visibility.HASHED),
    "mlp_small": ("mlp", Visibility.HASHED),
    "softmax": ("softmax_classifier", Visibility.PUBLIC),
    "transformer": ("transformer", Visibility.HASHED),
    "adamw": ("adamw", Visibility.PUBLIC),
    "mlp": ("mlp_large", Visibility.PUBLIC),
    "mlp_committed": ("mlp_large", Visibility.COMMITTED),
    "softmax_large": ("softmax_large", Visibility.PUBLIC),
}
"""Circuits by the names of their figures."""
ON_CHAIN = {"mlp_small": "", "transformer": "transformer_", "mlp_committed": "mlp_committed_"}
"""What is verified on a node, and how names of its figures begin."""
EXACT = {"mlp": "exact_", "softmax_stable": "exact_softmax_", "transformer": "exact_transformer_"}
"""Circuits that are proved exactly, and how names of their figures begin."""
CHAINED = 10
ETHER = 10**18


def zk_figures(cache: Path | None = None, names: Sequence[str] = tuple(MEASURED)) -> dict[str, Figure]:
    """Every circuit by EZKL, chains of ten exact proofs, and both verifiers on a node; keys stay in ``cache``."""
    if cache is None:
        with tempfile.TemporaryDirectory(prefix="pol-zk-bench-") as place:
            return zk_figures(Path(place), names)
    figures: dict[str, Figure] = {}
    off = 0
    for shown in names:
        name, visibility = MEASURED[shown]
        keys = setup(load_circuit(name), cache, visibility)
        inputs = example_vectors(keys.circuit, 1)
        proven = ezkl_prover.prove(keys, inputs)
        off = max(off, int(np.abs(proven.after - integer_step(keys.circuit.network, inputs)).max()))
        figures |= _circuit_figures(shown, keys, proven)
        if shown in ON_CHAIN:
            figures |= _generated_figures(ON_CHAIN[shown], keys, proven.proof)
    figures["integer_rule_error"] = Figure(off, f"units of 2^-20, in {len(names)} proofs")
    for name, prefix in EXACT.items():
        figures |= _exact_figures(cache, name, prefix)
    return figures


def float_error(name: str, inputs: Sequence[Integers], after: Integers) -> tuple[float, float]:
    """Greatest difference from the same step in float32, and the norm of all of them over that of the weights."""
    module = step_module(folder() / name)
    scale = load_circuit(name).network.scale
    theta, *rest = (torch.tensor(dequantize(array, scale), dtype=torch.float32) for array in inputs)
    expected = module.step(theta.requires_grad_(), *rest).detach().to(torch.float64).numpy()
    difference = dequantize(after, scale) - expected
    return float(np.abs(difference).max()), float(np.linalg.norm(difference) / np.linalg.norm(expected))


def _circuit_figures(shown: str, keys: Keys, proven: ezkl_prover.ProvenStep) -> dict[str, Figure]:
    greatest, relative = float_error(keys.circuit.name, example_vectors(keys.circuit, 1), proven.after)
    return {
        f"{shown}_parameters": Figure(keys.circuit.network.nodes[0].size, "parameters"),
        f"{shown}_rows": Figure(keys.summary.rows, f"rows of 2^{keys.summary.logrows}"),
        f"{shown}_prove_seconds": Figure(proven.seconds, "s"),
        f"{shown}_prove_processor_seconds": Figure(proven.processor_seconds, "s"),
        f"{shown}_prove_memory": Figure(proven.peak_bytes / 2**30, "GiB"),
        f"{shown}_proof_bytes": Figure(len(proven.proof.proof), "bytes"),
        f"{shown}_error": Figure(greatest, "against float32"),
        f"{shown}_relative_error": Figure(relative, "against float32"),
    }


def _generated_figures(prefix: str, keys: Keys, proof: GradientProof) -> dict[str, Figure]:
    code, size = bytecode(keys, compiler())
    with anvil_node() as url:
        wallet = _funded(Connection.to(url))
        generated, _ = deploy_generated(wallet, code)
        arguments = encode(["bytes", "uint256[]"], [proof.proof, proof.instances])
        receipt = wallet.send_data(generated, _VERIFY + arguments, "verifyProof")
    return {f"{prefix}verify_gas": Figure(receipt["gasUsed"], "gas"), f"{prefix}verifier_bytes": Figure(size, "bytes")}


def _exact_figures(cache: Path, name: str, prefix: str) -> dict[str, Figure]:
    """Ten steps of a circuit by Groth16, each beginning where the one before ended, all verified on a node."""
    circuit = load_circuit(name)
    keys = exact_prover.setup(circuit, cache)
    first = example_vectors(circuit, 1)[0]
    data = [example_vectors(circuit, seed)[1:] for seed in range(1, CHAINED + 1)]
    contexts = [bytes([integer_step]) * 32 for integer_step in range(CHAINED)]
    run = exact_prover.prove(keys, first, data, contexts)
    gas = []
    with anvil_node() as url:
        connection = Connection.to(url)
        wallet = _funded(connection)
        verifier = StepVerifier(connection, deploy_exact(wallet, keys.verifying_key.encode()))
        code_size = len(HexBytes(connection.web3.eth.get_code(verifier.address)))
        before = run.steps[0].before
        for integer_step, context in zip(run.steps, contexts, strict=True):
            hashes = [before, *integer_step.data, integer_step.after]
            if not verifier.holds(context, hashes, integer_step.proof.encode()):
                raise AssertionError("a proof of the chain doesn't hold")
            gas.append(
                wallet.send(verifier.function("verify", context, hashes, integer_step.proof.encode()))["gasUsed"]
            )
            before = integer_step.after
    each = (run.seconds - run.loading_seconds) / CHAINED
    return {
        f"{prefix}rows": Figure(len(constraints(circuit.network).rows), "rows"),
        f"{prefix}chain_steps": Figure(len(gas), "steps, verified on a node"),
        f"{prefix}prove_seconds": Figure(each, "s a step"),
        f"{prefix}load_seconds": Figure(run.loading_seconds, "s once"),
        f"{prefix}prove_memory": Figure(run.peak_bytes / 2**30, "GiB"),
        f"{prefix}proof_bytes": Figure(len(run.steps[0].proof.encode()), "bytes"),
        f"{prefix}verify_gas": Figure(max(gas), "gas"),
        f"{prefix}verifier_bytes": Figure(code_size, "bytes"),
    }


def _funded(connection: Connection) -> Wallet:
    wallet = Wallet.create(connection, b"\5" * 32)
    rich = connection.web3.eth.accounts[0]
    connection.web3.eth.send_transaction({"from": rich, "to": wallet.address, "value": Wei(100 * ETHER)})
    return wallet
