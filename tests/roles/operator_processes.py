"""An operator: runs ``pol`` in processes of their own against a town on a real node."""

import json
import os
import sys
from pathlib import Path
from typing import Any

from role_market import Town

from ended_process import ran
from pol.commitments.keccak import keccak256

KEY = keccak256(b"operator")


class Operator:
    """Runs ``pol`` against a town."""

    def __init__(self, folder: Path, town: Town) -> None:
        self.folder, self.town = folder, town
        document = folder / "deployment.json"
        document.write_text(self.town.deployment.to_json())
        self.place = ("--deployment", str(document), "--rpc", town.connection.name, "--store", town.store_url)
        self.party = (*self.place, "--key-env", "OPERATOR_KEY")

    def command(self, *arguments: str) -> list[str]:
        return [sys.executable, "-m", "pol.cli.main", *arguments]

    def pol(self, *arguments: str, code: int = 0) -> str:
        environment = {**os.environ, "OPERATOR_KEY": KEY.hex()}
        done = ran(self.command(*arguments), code=code, env=environment, timeout=300)
        return done.stdout if code == 0 else done.stderr

    def run(self, kind: str, *arguments: str) -> list[dict[str, Any]]:
        data = str(self.folder / kind)
        printed = self.pol("run", kind, *self.party, "--data", data, "--poll", "0.05", "--json", *arguments)
        return [json.loads(line) for line in printed.splitlines()]
