"""``pol zk``: prove a gradient step in zero knowledge, verify such proofs, and deploy their verifiers."""

from __future__ import annotations

import json
import time
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from pol.cli.examples import defaulted, example
from pol.cli.file_output import json_option, read_file, write_file
from pol.cli.market.network_options import network_option, node_option
from pol.cli.market.party_options import signer_of, signer_options
from pol.cli.verb_group import VerbGroup
from pol.cli.zk.zk_exact import exact
from pol.cli.zk.zk_keys import CACHE, keys_option, spinning, write_next
from pol.errors import ProtocolError
from pol.zk.circuits import Circuit, Visibility, example_vectors, load_circuit, names, read_inputs
from pol.zk.exact import exact_prover
from pol.zk.ezkl import ezkl_prover
from pol.zk.ezkl.gradient_proof import GradientProof
from pol.zk.ezkl.keys import Keys, bytecode, compiler, setup
from pol.zk.ezkl.reference_string import TEST_CHAINS

if TYPE_CHECKING:
    from pol.chain.account.wallet import Wallet

TEST_ONLY = (
    "TEST ONLY: the secret of this reference string is public, so anybody can forge proofs for these keys. "
    "Give a ceremony's file with --ceremony for proofs that hold."
)
_visibility = click.option("--visibility", type=click.Choice([str(v) for v in Visibility]), help="What proofs show.")
_ceremony = click.option(
    "--ceremony", type=click.Path(path_type=Path, exists=True), metavar="PTAU", help="A prepared powers-of-tau file."
)
_circuit = click.argument("circuit", metavar="CIRCUIT")


@click.group(cls=VerbGroup, epilog=example("pol zk prove mlp --out proof.json", "pol zk verify proof.json"))
def zk() -> None:
    """Zero-knowledge proofs of gradient steps; needs the extra proof-of-learning[zk]."""


zk.add_command(exact)


@zk.command("circuits", epilog=example("pol zk circuits"))
@json_option
def list_circuits(as_json: bool) -> None:
    """The circuits that pol has."""
    found = [load_circuit(name) for name in names()]
    if as_json:
        print(
            json.dumps(
                {c.name: {"inputs": c.network.inputs, "digest": c.network.digest.hex()} for c in found}, indent=2
            )
        )
        return
    table = Table("circuit", "inputs", "operations", "proofs show")
    for circuit in found:
        inputs = ", ".join(
            f"{name} {'x'.join(map(str, node.shape))}"
            for name, node in zip(circuit.network.inputs, circuit.network.nodes, strict=False)
        )
        table.add_row(circuit.name, inputs, str(len(circuit.network.nodes)), ", ".join(circuit.logrows))
    Console().print(table)


@zk.command("setup", epilog=example("pol zk setup mlp"))
@_circuit
@_visibility
@_ceremony
@keys_option
@json_option
def set_up(circuit: str, visibility: str | None, ceremony: Path | None, root: Path, as_json: bool) -> None:
    """Make reference string, circuit, keys and verifier; after an interrupt, run it again to go on."""
    keys = _set_up(load_circuit(circuit), visibility, ceremony, root, as_json)
    summary = asdict(keys.summary)
    if as_json:
        print(json.dumps({"keys": keys.name, **summary}, indent=2))
        return
    click.echo(f"{circuit} is set up: {keys.folder}")
    click.echo(f"next: pol zk prove {circuit}")


@zk.command("prove", epilog=example("pol zk prove mlp --seed 7 --out proof.json"))
@_circuit
@click.option(
    "--inputs", type=click.Path(path_type=Path), metavar="FILE", help="Lists of numbers by name; else examples."
)
@click.option("--seed", type=int, default=0, help="Of the examples.")
@defaulted("--out", type=click.Path(path_type=Path), default=Path("proof.json"), metavar="FILE")
@click.option("--next", "next_file", type=click.Path(path_type=Path), metavar="FILE", help="For the vector after it.")
@_visibility
@_ceremony
@keys_option
@json_option
def prove(
    circuit: str,
    inputs: Path | None,
    seed: int,
    out: Path,
    next_file: Path | None,
    visibility: str | None,
    ceremony: Path | None,
    root: Path,
    as_json: bool,
) -> None:
    """Prove one step and write the proof; the vector after the step is yours, and input of the next one."""
    chosen = load_circuit(circuit)
    given = read_inputs(chosen, inputs) if inputs else example_vectors(chosen, seed)
    keys = _set_up(chosen, visibility, ceremony, root, as_json)
    with spinning("proving", as_json):
        proven = ezkl_prover.prove(keys, given)
    write_file(out, proven.proof.to_json())
    if next_file is not None:
        write_next(next_file, chosen, proven.after)
    report = {
        "proof": str(out),
        "bytes": len(proven.proof.proof),
        "seconds": proven.seconds,
        "peak_bytes": proven.peak_bytes,
        "commitments": [] if keys.visibility is Visibility.PUBLIC else [c.hex() for c in proven.proof.commitments],
    }
    if as_json:
        print(json.dumps(report, indent=2))
        return
    click.echo(f"{out}: {report['bytes']} bytes in {proven.seconds:.1f} s, {proven.peak_bytes / 2**30:.2f} GB at most")
    click.echo(f"next: pol zk verify {out}")


@zk.command("verify", epilog=example("pol zk verify proof.json"))
@click.argument("proofs", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="PROOF...")
@_ceremony
@keys_option
@json_option
def verify(proofs: tuple[Path, ...], ceremony: Path | None, root: Path, as_json: bool) -> None:
    """Verify proofs; several have to follow each other: each begins with the vector that the one before ends with."""
    began, last = time.monotonic(), None
    for path in proofs:
        proof = GradientProof.from_json(read_file(path))
        keys = _set_up(load_circuit(proof.circuit), str(proof.visibility), ceremony, root, as_json)
        ezkl_prover.verify(keys, proof)
        if len(proofs) > 1 and proof.visibility is Visibility.PUBLIC:
            raise ProtocolError("proofs that show every number aren't chained: compare the numbers")
        if last is not None and proof.before != last:
            raise ProtocolError(f"{path} doesn't begin with the vector that the proof before it ends with")
        last = None if proof.visibility is Visibility.PUBLIC else proof.after
    if as_json:
        print(json.dumps({"holds": True, "proofs": len(proofs), "test_only": keys.is_test_only}))
        return
    click.echo(f"{len(proofs)} proof(s) hold, in {time.monotonic() - began:.1f} s")


@zk.command("deploy", epilog=example("pol zk deploy mlp --exact --rpc http://127.0.0.1:8545 --key-env KEY"))
@_circuit
@network_option
@node_option()
@click.option("--exact", is_flag=True, help="The exact circuit's verifier, whose proofs decide disputes.")
@click.option("--solc", metavar="PATH", help="A Solidity compiler, for the verifier that EZKL generates.")
@_ceremony
@keys_option
@signer_options
@json_option
def deploy(
    circuit: str,
    rpc: tuple[str, ...],
    exact: bool,
    solc: str | None,
    ceremony: Path | None,
    root: Path,
    as_json: bool,
    **signer: Any,
) -> None:
    """Deploy a circuit's verifier; a task's submitter pins its address."""
    from pol.chain.account.wallet import Wallet
    from pol.chain.node.connection import Connection

    connection = Connection.to(*rpc)
    wallet = Wallet(connection, signer_of(signer, connection.chain_id))
    chosen = load_circuit(circuit)
    with wallet.once():
        report = deployed(chosen, wallet, root, exact=exact, solc=solc, ceremony=ceremony, as_json=as_json)
        if as_json:
            print(json.dumps(report, indent=2))
            return
        click.echo(f"verifier of {circuit}: {report['verifier']}, {report['gas']:,} gas")


def deployed(
    circuit: Circuit,
    wallet: Wallet,
    root: Path = CACHE,
    *,
    exact: bool,
    solc: str | None = None,
    ceremony: Path | None = None,
    as_json: bool = False,
) -> dict[str, Any]:
    """Deploy a circuit's verifier; returns the address to pin, the key and the gas."""
    from pol.chain.court.step_verifiers import deploy_exact, deploy_generated

    before = len(wallet.receipts)
    if exact:
        with spinning("keys of the exact circuit", as_json):
            key = exact_prover.setup(circuit, root).verifying_key
        address, what = deploy_exact(wallet, key.encode()), {"exact": True, "key": key.digest.hex()}
    else:
        keys = _set_up(circuit, str(Visibility.HASHED), ceremony, root, as_json)
        chain = wallet.connection.chain_id
        if keys.is_test_only and chain not in TEST_CHAINS:
            raise ProtocolError(
                f"proofs for these test keys can be forged, and chain {chain} is no test chain: name a "
                "ceremony's file with --ceremony"
            )
        code, size = bytecode(keys, compiler(solc))
        generated, address = deploy_generated(wallet, code)
        what = {"exact": False, "key": keys.summary.verification_key, "generated": generated, "bytes": size}
    gas = sum(receipt["gasUsed"] for receipt in wallet.receipts[before:])
    return {"circuit": circuit.name, "verifier": address, "gas": gas, **what}


def _set_up(circuit: Circuit, visibility: str | None, ceremony: Path | None, root: Path, quiet: bool) -> Keys:
    with Progress(console=Console(stderr=True), disable=quiet, transient=True) as progress:
        bar = progress.add_task("", total=1)

        def show(stage: str, done: int, of: int) -> None:
            progress.update(bar, description=f"{circuit.name}: {stage}", completed=done, total=of)

        keys = setup(circuit, root, Visibility(visibility) if visibility else None, ceremony, show)
    if keys.is_test_only:
        click.secho(TEST_ONLY, err=True, fg="yellow", bold=True)
    return keys
