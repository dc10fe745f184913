"""``pol zk exact``: prove steps with exact rounding, and verify such proofs without the prover's code."""

from __future__ import annotations

import json
import time
from pathlib import Path

import click

from pol.cli.examples import defaulted, example
from pol.cli.file_output import json_option, read_file, write_file
from pol.cli.verb_group import VerbGroup
from pol.cli.verification.verification_options import hash_option
from pol.cli.zk.zk_keys import keys_option, spinning, write_next
from pol.errors import ProtocolError
from pol.zk.circuits import Circuit, example_vectors, load_circuit, read_inputs
from pol.zk.exact import exact_prover
from pol.zk.exact.circuit import public_inputs
from pol.zk.exact.exact_proof_file import ExactProofs
from pol.zk.fixed_point import Integers

UNBOUND = bytes(32)


@click.group(cls=VerbGroup, epilog=example("pol zk exact prove mlp", "pol zk exact verify steps.json"))
def exact() -> None:
    """Exact proofs: the very integers that the court computes, so they settle disputes."""


@exact.command("prove", epilog=example("pol zk exact prove mlp --steps 2 --out steps.json"))
@click.argument("circuit", metavar="CIRCUIT")
@click.option(
    "--inputs",
    "files",
    type=click.Path(path_type=Path),
    multiple=True,
    metavar="FILE",
    help="One for each step, in order; only the first one's vector counts. Else examples.",
)
@defaulted("--steps", type=click.IntRange(1), default=1, help="Of examples.")
@click.option("--seed", type=int, default=0, help="Of the examples.")
@click.option("--task", metavar="ID", help="Of the task that the proofs are for; else they are for none.")
@defaulted("--first-step", type=click.IntRange(0), default=0, help="Its number in the task.")
@defaulted("--out", type=click.Path(path_type=Path), default=Path("steps.json"), metavar="FILE")
@click.option("--next", "next_file", type=click.Path(path_type=Path), metavar="FILE", help="For the last vector.")
@keys_option
@json_option
def prove(
    circuit: str,
    files: tuple[Path, ...],
    steps: int,
    seed: int,
    task: str | None,
    first_step: int,
    out: Path,
    next_file: Path | None,
    root: Path,
    as_json: bool,
) -> None:
    """Prove steps that follow each other; the key is read once, which takes longer than a proof."""
    chosen = load_circuit(circuit)
    first, data = _read(chosen, files) if files else _drawn(chosen, steps, seed)
    contexts = _contexts(task, first_step, len(data))
    # A step without a proof is found before the keys are made, which takes minutes for a large circuit.
    public_inputs(chosen.network, [first, *data[0]], 0)
    with spinning("keys of the exact circuit", as_json):
        keys = exact_prover.setup(chosen, root)
    with spinning(f"proving {len(data)} steps", as_json):
        run = exact_prover.prove(keys, first, data, contexts)
    proofs = ExactProofs(circuit, keys.verifying_key, tuple(contexts), run.steps)
    write_file(out, proofs.to_json())
    if next_file is not None:
        write_next(next_file, chosen, run.last)
    report = {
        "proofs": str(out),
        "steps": len(run.steps),
        "key": proofs.key.digest.hex(),
        "seconds": run.seconds,
        "loading_seconds": run.loading_seconds,
        "peak_bytes": run.peak_bytes,
    }
    if as_json:
        print(json.dumps(report, indent=2))
        return
    click.echo(f"{out}: {len(run.steps)} step(s) in {run.seconds:.1f} s, {run.loading_seconds:.1f} s of it for the key")
    click.echo(f"next: pol zk exact verify {out}")


@exact.command("verify", epilog=example("pol zk exact verify steps.json"))
@click.argument("path", type=click.Path(path_type=Path), metavar="FILE")
@click.option("--task", metavar="ID", help="Of the task that the proofs have to be for; else of none.")
@defaulted("--first-step", type=click.IntRange(0), default=0, help="Its number in the task.")
@click.option("--key", callback=hash_option, metavar="HEX", help="keyDigest() of the verifier that you trust.")
@json_option
def verify(path: Path, task: str | None, first_step: int, key: str | None, as_json: bool) -> None:
    """Verify a file of proofs by py_ecc's pairing, and say what they hold about.

    A proof holds for one key, one step of one task, and three hashes. The name of the circuit in the file is its
    author's word: only the key says which circuit it is.
    """
    proofs = ExactProofs.from_json(read_file(path))
    found, count = proofs.key.digest.hex(), len(proofs.steps)
    if proofs.contexts != tuple(_contexts(task, first_step, count)):
        given = "no task" if task is None else f"steps {first_step} to {first_step + count - 1} of task {task}"
        raise ProtocolError(f"the proofs aren't about {given}: name their task and step with --task and --first-step")
    if key not in (None, found):
        raise ProtocolError(f"the proofs are for the key {found}, not for {key}: get the file for that verifier")
    began = time.monotonic()
    with spinning(f"verifying {count} steps", as_json):
        proofs.verify()
    first, last = proofs.steps[0].before.hex(), proofs.steps[-1].after.hex()
    steps = {"task": task, "first_step": first_step, "steps": count, "before": first, "after": last}
    if as_json:
        print(json.dumps({"holds": True, **steps, "key": found, "is_key_given": key is not None}))
        return
    about = "no task" if task is None else f"task {task}, from step {first_step}"
    click.echo(f"{count} step(s) of {about} hold, in {time.monotonic() - began:.1f} s")
    click.echo(f"from the vector with hash {first} to {last}")
    compare = ": compare it with keyDigest() of the verifier that you trust" if key is None else ""
    click.echo(f"for the key {found}{compare}")
    click.echo(f"not proven: that this is the key of the circuit {proofs.circuit!r}, as the file says")


def _contexts(task: str | None, first: int, count: int) -> list[bytes]:
    if task is None:
        return [UNBOUND] * count
    try:
        task_id = bytes.fromhex(task.removeprefix("0x"))
    except ValueError:
        task_id = b""
    if len(task_id) != len(UNBOUND):
        raise ProtocolError(f"{task} is no id of a task: 64 hex digits")
    from pol.chain.desks.proven_steps import context_of

    return [context_of(task_id, first + step) for step in range(count)]


def _read(circuit: Circuit, files: tuple[Path, ...]) -> tuple[Integers, list[list[Integers]]]:
    first, *data = read_inputs(circuit, files[0])
    return first, [data, *(read_inputs(circuit, path, skip=1) for path in files[1:])]


def _drawn(circuit: Circuit, steps: int, seed: int) -> tuple[Integers, list[list[Integers]]]:
    first, *data = example_vectors(circuit, seed)
    return first, [data, *(example_vectors(circuit, seed + step)[1:] for step in range(1, steps))]
