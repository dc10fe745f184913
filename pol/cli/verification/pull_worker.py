"""``pol worker STORE``: replay segments for verifiers, one after another, or one job of a cluster."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from pol.cli.examples import defaulted, example
from pol.cli.finite_range import FiniteRange
from pol.cli.key_option import signing_key
from pol.cli.verification.verification_options import device_option
from pol.training.record.recorded_run import open_store


@click.command(epilog=example("pol worker s3://bucket/store --key worker.pem"))
@click.argument("store")
@click.option(
    "--key", type=click.Path(path_type=Path), callback=signing_key, help="PEM file of an Ed25519 key: signs results."
)
@click.option("--queue", metavar="STORE", help="Where jobs and results lie, if not beside the tensors.")
@click.option("--jobs", type=click.IntRange(1), metavar="N", help="End after N jobs; else after an interrupt.")
@click.option("--job", metavar="DIGEST", help="Do this job, leave its result unsigned, and end: for --engine command.")
@click.option("--threads", type=click.IntRange(0), default=0, metavar="N", help="Threads of the kernels; 0: all.")
@device_option
@defaulted("--beat", type=FiniteRange(0.01, 60), default=10.0, help="Seconds between signs of life.")
@defaulted("--poll", type=FiniteRange(0.01, 60), default=1.0, help="Seconds between looks for a job.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object for each event.")
def worker(
    store: str,
    key: Ed25519PrivateKey | None,
    queue: str | None,
    jobs: int | None,
    job: str | None,
    threads: int,
    device: str,
    beat: float,
    poll: float,
    as_json: bool,
) -> int:
    """Replay segments of trainings in STORE for verifiers who admit the key (pol verify --engine store).

    Tensors come from STORE alone, whatever a job says; jobs, leases and results lie there too, or in --queue, which has
    to be writable. Nothing that a job names is executed.
    """
    from pol.training.record.signed_heads import public_bytes
    from pol.verification.engines.replay_queue import ReplayQueue
    from pol.verification.engines.replay_worker import ReplayWorker, replay_posted

    def tell(sentence: str, facts: dict[str, Any]) -> None:
        click.echo(json.dumps(facts) if as_json else sentence)

    if (key is None) == (job is None):
        raise click.UsageError("give --key FILE to work for verifiers, or --job DIGEST for one job of a cluster")
    url = open_store(store).url
    shared = ReplayQueue(open_store(queue or store))
    if job is not None:
        done = replay_posted(shared, url, job, threads, device).verdict
        outcome = done.outcome.name.lower()
        facts = {"event": "answered", "job": job, "segment": done.segment, "outcome": outcome}
        tell(f"segment {done.segment}: {outcome}: {done.detail}", facts)
        return 0
    assert key is not None
    public = public_bytes(key).hex()
    tell(f"worker {public} waits for jobs in {shared.url}", {"event": "ready", "worker": public, "queue": shared.url})
    ReplayWorker(shared, url, key, threads, device, beat, poll, tell).serve(jobs)
    return 0
