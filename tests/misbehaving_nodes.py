"""HTTP servers before a real node that pass requests on, or misbehave in the ways of real gateways."""

import json
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import requests


@dataclass
class Raw:
    """An answer as it goes over the wire; `length` is what the header says where it lies."""

    status: int = 200
    body: bytes = b""
    headers: dict[str, str] = field(default_factory=dict)
    length: int | None = None


Pass = Callable[[str, list[Any]], Any]
"""Asks the node behind: its JSON-RPC answer to a method."""

Manner = Callable[[str, list[Any], Pass], Any]
"""What goes back to a method with parameters: a result, a whole answer (a dict with "error"), or Raw."""


def honest(method: str, params: list[Any], node: Pass) -> Any:
    return node(method, params)


@dataclass
class Gateway:
    url: str
    manner: Manner = honest
    calls: list[str] = field(default_factory=list)

    def count(self, method: str) -> int:
        return Counter(self.calls)[method]


@contextmanager
def gateway(node_url: str, manner: Manner = honest) -> Iterator[Gateway]:
    """A server on loopback; its `manner` may be changed while it runs."""

    def ask(method: str, params: list[Any]) -> Any:
        request = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        answer = requests.post(node_url, json=request, timeout=30).json()
        return answer["result"] if "result" in answer else {"error": answer["error"]}

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:  # http.server calls it so
            request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            here.calls.append(request["method"])
            result = here.manner(request["method"], request["params"], ask)
            if not isinstance(result, Raw):
                whole = result if isinstance(result, dict) and "error" in result else {"result": result}
                result = Raw(body=json.dumps({"jsonrpc": "2.0", "id": request["id"], **whole}).encode())
            self.send_response(result.status)
            for name, value in result.headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(result.body) if result.length is None else result.length))
            self.send_header("Connection", "close")
            self.end_headers()
            self.wfile.write(result.body)
            self.close_connection = True

        def log_message(self, *arguments: Any) -> None:
            pass

    class Server(ThreadingHTTPServer):
        def handle_error(self, *arguments: Any) -> None:
            """A client that has gone away is what some tests want."""

    with Server(("127.0.0.1", 0), Handler) as server:
        here = Gateway(f"http://127.0.0.1:{server.server_port}", manner)
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield here
        finally:
            server.shutdown()
            thread.join()
