"""The command line that runs one replay job elsewhere, from a template (docs/guides/engines.md).

A template becomes a list of arguments once; placeholders are replaced inside of arguments after that. So no shell of
this machine sees a value, and no value can become two arguments.
"""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass

from pol.errors import ProtocolError
from pol.execution.device.open_device import CPU
from pol.verification.engines.engine import ReplayJob

PLACEHOLDERS = {
    "worker": "pol worker ..., as arguments of their own",
    "shell": "the same, quoted as one argument for the shell of another machine",
    "store": "URL of the store",
    "queue": "URL of the store with jobs and results",
    "job": "digest of the job",
    "name": "a name for the attempt: letters, digits and hyphens",
    "memory": "mebibytes that the replay takes",
    "threads": "threads of the kernels",
}
_PLACEHOLDER = re.compile(r"\{([a-z]+)\}")
_LEAST_MEBIBYTES = 512
"""For the interpreter and its libraries."""


@dataclass(frozen=True)
class JobCommand:
    """The command line of one replay job elsewhere: a template, as a list of arguments.

    Raises ProtocolError for a template that is empty, names an unknown placeholder or no job.
    """

    template: tuple[str, ...]

    def __post_init__(self) -> None:
        named = {name for argument in self.template for name in _PLACEHOLDER.findall(argument)}
        told = ", ".join(f"{{{name}}}" for name in PLACEHOLDERS)
        if unknown := named - PLACEHOLDERS.keys():
            raise ProtocolError(f"the command has the unknown placeholder {{{min(unknown)}}}: there are {told}")
        if not named & {"worker", "shell", "job"}:
            raise ProtocolError("the command names no job: end it with {worker}, or with {shell} for a remote shell")
        if any("{worker}" in argument and argument != "{worker}" for argument in self.template):
            raise ProtocolError("{worker} stands for several arguments: put spaces around it, or write {shell}")

    @classmethod
    def of_text(cls, text: str) -> JobCommand:
        """The template in a line as a shell would read it, without its substitutions.

        Raises:
            ProtocolError: as above, or a quotation without an end.
        """
        try:
            return cls(tuple(shlex.split(text)))
        except ValueError as error:
            raise ProtocolError(f"can't read the command {text!r}: {error}") from error

    def arguments(
        self, job: ReplayJob, queue: str, digest: str, attempt: int, threads: int = 0, device: str = CPU
    ) -> list[str]:
        """The arguments of one attempt at a job of ``queue``."""
        worker = ["pol", "worker", job.store, "--job", digest, "--threads", str(threads)]
        worker += ["--device", device] if device != CPU else []
        worker += ["--queue", queue] if queue != job.store else []
        values = {
            "shell": shlex.join(worker),
            "store": job.store,
            "queue": queue,
            "job": digest,
            "name": f"pol-{digest[:16]}-{attempt}",
            "memory": str(-(-job.memory // (1 << 20)) + _LEAST_MEBIBYTES),
            "threads": str(threads),
        }
        found: list[str] = []
        for argument in self.template:
            found += worker if argument == "{worker}" else [_PLACEHOLDER.sub(lambda match: values[match[1]], argument)]
        return found
