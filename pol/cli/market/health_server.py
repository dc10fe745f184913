"""The health server of a process: /metrics for Prometheus, and /health for a supervisor."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import click
from prometheus_client import CollectorRegistry, Counter, Gauge, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_LATEST

from pol.chain.node.connection import Connection
from pol.chain.rpc.node_provider import Endpoints
from pol.errors import OperationalError, reason_of

STALE_SECONDS = 600.0
"""A process is unhealthy after so many seconds without a turn that could read the chain."""


class HealthMetrics:
    """Metrics that all processes have; more go into ``registry``."""

    def __init__(self, kind: str, connection: Connection, clock: Callable[[], float] = time.time) -> None:
        self._connection, self._clock, self._started = connection, clock, clock()
        self.registry = CollectorRegistry()
        self._looked: float | None = None
        self._trouble = ""
        self._lacks: dict[str, str] = {}
        self.state: dict[str, object] = {}
        """What a party says of itself besides."""
        about = Gauge("pol_process", "1: this process runs", ["role", "chain"], registry=self.registry)
        about.labels(kind, str(connection.chain_id)).set(1)
        self._last = self._gauge("pol_last_look_timestamp_seconds", "When it last could look at the chain")
        self._failing = self._gauge("pol_failures_in_a_row", "Turns in a row in which the chain couldn't be looked at")
        self._block = self._gauge("pol_head_block", "The last block that it has seen")
        self._age = self._gauge("pol_head_age_seconds", "How old that block was when it was looked at")
        self._nodes = {
            name: Gauge(f"pol_node_{name}", told, ["node"], registry=self.registry)
            for name, told in (
                ("answered", "Requests that a node has answered"),
                ("failed", "Requests that a node hasn't answered well"),
                ("outvoted", "Answers that differed from those of a quorum"),
                ("latency", "Seconds that its last answer took"),
            )
        }

    def _gauge(self, name: str, told: str) -> Gauge:
        return Gauge(name, told, registry=self.registry)

    def counter(self, name: str, told: str, labels: tuple[str, ...]) -> Counter:
        """A new counter."""
        return Counter(name, told, labels, registry=self.registry)

    def looked(self) -> None:
        """Note that the process has read the chain. Raises OperationalError: the node fails now."""
        block, age = self._connection.block_number(), self._clock() - self._connection.now()
        self._looked, self._trouble = self._clock(), ""
        self._last.set(self._looked)
        self._block.set(block)
        self._age.set(age)
        self.failing(0)

    def failing(self, turns: int, trouble: str = "") -> None:
        """Note how many turns in a row have failed."""
        self._failing.set(turns)
        self._trouble = trouble or self._trouble

    def lacks(self, about: str, line: str) -> None:
        """Note what the process lacks, with what mends it; empty if it lacks nothing."""
        self._lacks.pop(about, None)
        if line:
            self._lacks[about] = line

    def health(self) -> tuple[bool, dict[str, object]]:
        """Whether the process is healthy, and the body of /health."""
        since = self._clock() - (self._looked if self._looked is not None else self._started)
        well = since < STALE_SECONDS
        told = {"well": well, "seconds_since_last_look": round(since, 1), "has_looked": self._looked is not None}
        lacks = {"lacks": list(dict.fromkeys(self._lacks.values()))} if self._lacks else {}
        return well, told | self.state | lacks | ({"trouble": self._trouble} if self._trouble else {})

    def text(self) -> bytes:
        """All metrics in the format of Prometheus."""
        if isinstance(self._connection.web3.provider, Endpoints):
            for node in self._connection.web3.provider.health():
                for name, gauge in self._nodes.items():
                    gauge.labels(node.name).set(getattr(node, name))
        return generate_latest(self.registry)


@contextmanager
def serve_health(vitals: HealthMetrics, address: str | None) -> Iterator[str | None]:
    """Serve at HOST:PORT while the block runs, and give the URL. Without an address nothing is served.

    Raises:
        click.UsageError: not an address.
        OperationalError: the address can't be bound.
    """
    if address is None:
        yield None
        return
    host, _, port = address.rpartition(":")
    if not host or not port.isdecimal():
        raise click.UsageError(f"--metrics {address}: write HOST:PORT, as in 127.0.0.1:9100")

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:  # the base class's name
            if self.path == "/metrics":
                self._answer(200, CONTENT_TYPE_LATEST, vitals.text())
            elif self.path == "/health":
                well, told = vitals.health()
                self._answer(200 if well else 503, "application/json", json.dumps(told).encode() + b"\n")
            else:
                self._answer(404, "text/plain", b"there are /metrics and /health\n")

        def _answer(self, code: int, kind: str, body: bytes) -> None:
            self.send_response(code)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Log nothing: scrapers ask every few seconds."""

    try:
        server = ThreadingHTTPServer((host, int(port)), Handler)
    except (OSError, OverflowError) as error:
        raise OperationalError(f"can't listen at {address} for --metrics: {reason_of(error)}") from error
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, name="metrics", daemon=True)
    thread.start()
    try:
        yield f"http://{host}:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
