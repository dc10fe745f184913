"""Rounds in which a process of a group is killed once, as by a SIGKILL from outside."""

from __future__ import annotations

import os
import signal
from functools import partial
from pathlib import Path
from unittest import mock

from pol.decentralised.processes.local_processes import Round
from pol.decentralised.processes.round_worker import RoundWorker
from pol.rounds.log.journaled_keeper import JournaledKeeper

BEGUN, SHARED, JOURNALED = "begun", "shared", "journaled"
"""When it dies: its round has begun; its claims are signed and shared; all is in the journal and not in the log."""


def dying_round(do_round: Round, flag: str, rank: int, when: str, worker: RoundWorker) -> None:
    """``do_round``, in whose round 1 process ``rank`` dies, unless it has died before (``flag``)."""
    is_last = worker.exchange.rank == rank and worker.round == 1 and not Path(flag).exists()
    if is_last and when == BEGUN:
        _die(flag)
    do_round(worker)
    if is_last and when == SHARED:
        _die(flag)
    if is_last and when == JOURNALED:
        mock.patch.object(JournaledKeeper, "_sign_head", partial(_die, flag)).start()


def _die(flag: str) -> None:
    Path(flag).touch()
    os.kill(os.getpid(), signal.SIGKILL)
