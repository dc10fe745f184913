"""A quiet HTTP server on loopback that ends with its test."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class Quiet(BaseHTTPRequestHandler):
    """Tells the terminal nothing; what it reads of its test are attributes of the server."""

    server: Any

    def log_message(self, *_: object) -> None:
        """Not to the terminal."""

    def respond(self) -> None:
        """To any request."""

    def reply(self, status: int = 200, body: bytes = b"", **headers: str) -> None:
        """A whole answer, with its length if the headers state no other; underscores in their names are hyphens."""
        stated = {name.replace("_", "-"): value for name, value in headers.items()}
        self.send_response(status)
        for name, value in {"Content-Length": str(len(body)), **stated}.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)


for method in ("GET", "HEAD", "POST", "PUT"):
    setattr(Quiet, f"do_{method}", lambda self: self.respond())


@contextmanager
def serving(handler: type[Quiet], **attributes: Any) -> Iterator[Any]:
    """The server, which has these attributes and its `url`; its event `over` ends whoever waits for that."""
    server: Any = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads, server.over = True, threading.Event()
    server.handle_error = lambda *_: None  # a client that has gone away is what some tests want
    server.url = f"http://127.0.0.1:{server.server_port}"
    vars(server).update(attributes)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield server
    finally:
        server.over.set()
        server.shutdown()
        server.server_close()
        thread.join()
