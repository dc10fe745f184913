"""An operator: runs ``pol`` against a town on a real node."""

import json
import os
import sys
from pathlib import Path
from typing import Any
from unittest import mock

from role_market import Town

from cli_runner import Said, pol
from pol.commitments.keccak import keccak256

KEY = keccak256(b"operator")


class Operator:
    """Runs ``pol`` against a town."""

    def __init__(self, folder: Path, town: Town) -> None:
        self.folder, self.town = folder, town
        (document := folder / "deployment.json").write_text(self.town.deployment.to_json())
        self.place = ("--deployment", str(document), "--rpc", town.connection.name, "--store", town.store_url)
        self.party = (*self.place, "--key-env", "OPERATOR_KEY")

    def command(self, *arguments: str) -> list[str]:
        return [sys.executable, "-m", "pol.cli.main", *arguments]

    def pol(self, *arguments: str, code: int = 0) -> str:
        with mock.patch.dict(os.environ, OPERATOR_KEY=KEY.hex()):
            said = pol(*arguments)
        assert said == Said(code), said.out
        return said.out

    def run(self, kind: str, *arguments: str) -> list[dict[str, Any]]:
        told = ("--data", str(self.folder / kind), "--poll", "0.05", "--json", *arguments)
        return [json.loads(line) for line in self.pol("run", kind, *self.party, *told).splitlines()]
