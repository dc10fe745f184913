"""``pol serve STORE``: serves a store over HTTP, so that verifiers can read files and chunks."""

from __future__ import annotations

import asyncio
import json

import click

from pol.cli.examples import defaulted, example
from pol.cli.file_output import json_option
from pol.cli.record.store_server import serve as serve_store
from pol.training.record.learning_record import HEAD
from pol.training.record.recorded_run import open_store


@click.command(epilog=example("pol serve runs/first --port 8765"))
@click.argument("path", metavar="STORE")
@defaulted("--host", default="127.0.0.1", help="Address to listen on: this machine only.")
@defaulted("--port", default=8765, type=click.IntRange(0, 65535), help="0: any that is free.")
@json_option
def serve(path: str, host: str, port: int, as_json: bool) -> int:
    """Serve STORE read only: /record.json, its objects and files, and /chunk/CHECKPOINT/POSITION/LEAF.

    The address that it prints is itself a store: pol check http://127.0.0.1:8765
    """
    store = open_store(path)
    store.holds(HEAD)  # raises if there is no server

    def tell(found: int) -> None:
        url = f"http://{host}:{found}"
        click.echo(json.dumps({"store": store.url, "url": url}) if as_json else f"serving {store.url} at {url}")

    asyncio.run(serve_store(store, host, port, tell))
    return 0
