"""A quiet HTTP server on loopback that ends with its test, and a certificate for one."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from ipaddress import IPv4Address
from pathlib import Path
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID


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


def certify(folder: Path) -> tuple[Path, Path]:
    """A certificate for 127.0.0.1, signed by itself, and its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "127.0.0.1")])
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder(name, name, key.public_key(), 7, now - timedelta(days=1), now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(IPv4Address("127.0.0.1"))]), False)
        .add_extension(x509.BasicConstraints(True, None), True)
        .sign(key, hashes.SHA256())
    )
    paths = folder / "certificate.pem", folder / "key.pem"
    paths[0].write_bytes(certificate.public_bytes(Encoding.PEM))
    paths[1].write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    return paths
