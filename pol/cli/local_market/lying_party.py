"""A party of `pol demo` that lies, as a process with the options of `pol run`: `pol up --cheat` starts it.

``python -m pol.cli.local_market.lying_party run solver ...``. No verb leads here.
"""

from __future__ import annotations

from random import Random
from typing import Any

from pol.cli.main import main
from pol.cli.market.run import KINDS
from pol.demo.cheating_parties import JumpingSolver, LyingVerifier
from pol.errors import ProtocolError
from pol.roles.solver.solver import Solver
from pol.roles.verifier.verifier import Verifier

SEED = "pol up"
"""What a liar draws its lie from."""


class JumpingSolverProcess(JumpingSolver):
    """Trains canonically, but jumps to a dead network in one segment; made with the arguments of an honest party."""

    def __init__(self, *arguments: Any, **named: Any) -> None:
        Solver.__init__(self, *arguments, **named)
        self._random = Random(SEED)


class LyingVerifierProcess(LyingVerifier):
    """Flips one bit of a drawn segment; made with the arguments of an honest party."""

    def __init__(self, *arguments: Any, **named: Any) -> None:
        Verifier.__init__(self, *arguments, **named)
        self._random = Random(SEED)

    def require_acceptable(self, task_id: bytes) -> None:
        """As every party does, and it keeps away from a task about which it was caught."""
        super().require_acceptable(task_id)
        settled = self.market.challenges.events("DisputeSettled", taskId=task_id)
        if any(not event["asserterWon"] for event in settled):
            raise ProtocolError("a lie about this task was proved: somebody else verifies it")


LIARS = {"solver": "JumpingSolverProcess", "verifier": "LyingVerifierProcess"}
"""The party that lies, by role."""

if __name__ == "__main__":
    for role, name in LIARS.items():
        KINDS[role] = (f"pol.cli.local_market.lying_party:{name}", KINDS[role][1])
    main()
