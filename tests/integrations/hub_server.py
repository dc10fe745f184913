"""The endpoints of the Hugging Face hub that its client calls to store and fetch files, on loopback; without Xet."""

import base64
import hashlib
import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import unquote, urlsplit

from loopback_server import Quiet, serving

TOKEN = "hf_a_token_that_nobody_may_see"
LARGE = 1 << 10
"""Bytes from which a file is kept apart from git."""


class Hub:
    """What the server keeps: large files by SHA-256, and the files of each repository."""

    def __init__(self) -> None:
        self.large: dict[str, bytes] = {}
        self.repositories: dict[str, dict[str, tuple[bytes, bool]]] = {}
        self.commits: dict[str, list[str]] = {}
        self.sent: list[str] = []
        self.lost: set[str] = set()
        """Paths that a commit forgets."""
        self.failing = False
        self.url = ""

    def commit_of(self, repo: str) -> str:
        return hashlib.sha1(f"{repo} {len(self.commits[repo])}".encode()).hexdigest()

    def entry(self, path: str, data: bytes, is_large: bool) -> dict[str, Any]:
        blob = hashlib.sha1(b"blob %d\0" % len(data) + data).hexdigest()
        large = {"lfs": {"oid": hashlib.sha256(data).hexdigest(), "size": len(data), "pointerSize": 130}}
        return {"type": "file", "path": path, "size": len(data), "oid": blob} | (large if is_large else {})


@contextmanager
def hub() -> Iterator[Hub]:
    """A hub that answers at its ``url``."""
    kept = Hub()

    class Handler(Quiet):
        protocol_version = "HTTP/1.1"

        def give(self, document: object, status: int = 200) -> None:
            self.reply(status, json.dumps(document).encode(), Content_Type="application/json")

        def respond(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            path = unquote(urlsplit(self.path).path)
            if self.headers.get("Authorization") != f"Bearer {TOKEN}" and not path.startswith("/upload/"):
                self.reply(401, b"", X_Error_Message="Invalid credentials")
            elif kept.failing:
                self.reply(400, b"", X_Error_Message="the hub is being repaired")
            elif path == "/api/repos/create":
                name = json.loads(body)["name"]
                repo = f"{json.loads(body).get('organization') or 'me'}/{name}"
                is_new = repo not in kept.repositories
                kept.repositories.setdefault(repo, {})
                kept.commits.setdefault(repo, ["initial commit"])
                self.give({"url": f"{kept.url}/{repo}"}, 200 if is_new else 409)
            elif path.startswith("/upload/"):
                assert hashlib.sha256(body).hexdigest() == path.rpartition("/")[2]
                kept.large[path.rpartition("/")[2]] = body
                self.reply(200)
            elif re.fullmatch(r"/\w+/\w+\.git/info/lfs/objects/batch", path):
                self.batch(json.loads(body))
            elif found := re.fullmatch(r"/api/models/(\w+/\w+)/(preupload|commit|tree|revision)/(\w+)", path):
                self.repository(*found.groups(), body)
            elif found := re.fullmatch(r"/(\w+/\w+)/resolve/(\w+)/(.+)", path):
                self.resolve(found[1], found[3])
            else:
                self.reply(404)

        def batch(self, asked: dict[str, Any]) -> None:
            objects = []
            for item in asked["objects"]:
                actions = {"actions": {"upload": {"href": f"{kept.url}/upload/{item['oid']}"}}}
                objects.append({**item, **({} if item["oid"] in kept.large else actions)})
            self.give({"transfer": "basic", "objects": objects})

        def repository(self, repo: str, action: str, revision: str, body: bytes) -> None:
            files = kept.repositories.get(repo)
            if files is None:
                self.reply(404, b"", X_Error_Code="RepoNotFound")
            elif action == "preupload":
                asked = json.loads(body)["files"]
                modes = [(file["path"], "lfs" if file["size"] >= LARGE else "regular") for file in asked]
                self.give(
                    {"files": [{"path": path, "uploadMode": mode, "shouldIgnore": False} for path, mode in modes]}
                )
            elif action == "commit":
                header, *operations = (json.loads(line) for line in body.splitlines())
                for operation in operations:
                    value = operation["value"]
                    if value["path"] in kept.lost:
                        continue
                    is_large = operation["key"] == "lfsFile"
                    data = kept.large[value["oid"]] if is_large else base64.b64decode(value["content"])
                    files[value["path"]] = data, is_large
                    kept.sent.append(value["path"])
                kept.commits[repo].append(header["value"]["summary"])
                commit = kept.commit_of(repo)
                self.give({"commitUrl": f"{kept.url}/{repo}/commit/{commit}", "commitOid": commit})
            elif action == "tree":
                self.give([kept.entry(path, *file) for path, file in files.items()])
            else:
                self.give(
                    {"id": repo, "sha": kept.commit_of(repo), "siblings": [{"rfilename": name} for name in files]}
                )

        def resolve(self, repo: str, path: str) -> None:
            files = kept.repositories.get(repo, {})
            if path not in files:
                self.reply(404, b"", X_Error_Code="EntryNotFound")
                return
            data, is_large = files[path]
            entry = kept.entry(path, data, is_large)
            etag = entry["lfs"]["oid"] if is_large else entry["oid"]
            self.reply(200, data, ETag=f'"{etag}"', X_Repo_Commit=kept.commit_of(repo))

    with serving(Handler) as server:
        kept.url = server.url
        yield kept
