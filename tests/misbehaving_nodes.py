"""HTTP servers before a real node that pass requests on, or misbehave in the ways of real gateways."""

import json
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import requests

from loopback_server import Quiet, serving


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
    node: str
    manner: Manner = honest
    calls: list[str] = field(default_factory=list)
    posts: int = 0
    """Of HTTP: a batch of calls is one."""
    most: int | None = None
    """Calls of a batch that it takes; others get an error."""

    def count(self, method: str) -> int:
        return Counter(self.calls)[method]


@contextmanager
def gateway(node_url: str, manner: Manner = honest) -> Iterator[Gateway]:
    """A server on loopback; its `manner` may be changed while it runs."""

    def ask(method: str, params: list[Any]) -> Any:
        request = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        answer = requests.post(node_url, json=request, timeout=30).json()
        return answer["result"] if "result" in answer else {"error": answer["error"]}

    class Handler(Quiet):
        protocol_version = "HTTP/1.1"

        def respond(self) -> None:
            asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            here.posts += 1
            if isinstance(asked, list) and here.most is not None and len(asked) > here.most:
                found: list[Any] = [Raw(body=b'{"jsonrpc": "2.0", "id": null, "error": {"code": -32600}}')]
            else:
                found = [self.answer(request) for request in (asked if isinstance(asked, list) else [asked])]
            result = next((each for each in found if isinstance(each, Raw)), None)
            if result is None:
                result = Raw(body=json.dumps(found if isinstance(asked, list) else found[0]).encode())
            length = len(result.body) if result.length is None else result.length
            self.reply(result.status, result.body, **result.headers, Content_Length=str(length), Connection="close")
            self.close_connection = True

        def answer(self, request: dict[str, Any]) -> Raw | dict[str, Any]:
            here.calls.append(request["method"])
            result = here.manner(request["method"], request["params"], ask)
            if isinstance(result, Raw):
                return result
            whole = result if isinstance(result, dict) and "error" in result else {"result": result}
            return {"jsonrpc": "2.0", "id": request["id"], **whole}

    with serving(Handler) as server:
        here = Gateway(server.url, node_url, manner)
        yield here
