"""A relay of drand on a loopback port: answers with the published rounds, or with what a test lets it answer."""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

from drand_rounds import VECTORS

Answer = tuple[int, bytes]


def honest(network: str, number: str) -> Answer:
    """What the public relays answer."""
    entry: dict[str, Any] | None = VECTORS["networks"][network]["rounds"].get(number)
    if entry is None:
        return 404, b"no such round"
    fields = ("round", "randomness", "signature", "previous_signature")
    return 200, json.dumps({name: entry[name] for name in fields if name in entry}).encode()


@contextmanager
def relay(answer: Callable[[str, str], Answer] = honest) -> Iterator[str]:
    """URL of a relay; `answer(network, number)` gives status and body."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            _, chain_hash, public, number = self.path.split("/")
            networks = {network["info"]["hash"]: name for name, network in VECTORS["networks"].items()}
            status, body = answer(networks[chain_hash], number) if public == "public" else (404, b"")
            self.send_response(status)
            if status == 302:
                self.send_header("Location", self.path)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002  # the base class calls it so
            """Nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()
