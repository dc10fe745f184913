"""What a wheel can do where nothing but it and its dependencies are: python .ci/wheel_check.py.

Every verb explains itself; files that release 0.1 has written are read, checked and replayed bit for bit. cibuildwheel
runs it for each wheel (pyproject.toml), with no compiler in use.
"""

import json
import subprocess
import sys
import sysconfig
from pathlib import Path

KEPT = Path(__file__).resolve().parents[1] / "fixtures" / "compatibility" / "0.1"
POL = Path(sysconfig.get_path("scripts")) / "pol"


def say(*arguments: str | Path) -> str:
    """The output of a command of pol, which has to succeed."""
    done = subprocess.run([POL, *arguments], capture_output=True, text=True, cwd=KEPT, check=False)
    if done.returncode != 0:
        sys.exit(f"pol {' '.join(map(str, arguments))} ended with {done.returncode}: {done.stdout}{done.stderr}")
    return done.stdout


def main() -> None:
    """Raise SystemExit with a reason if the wheel lacks something."""
    from pol.cli.commands import VERBS
    from pol.execution import _kernels

    kept = json.loads((KEPT / "expected.json").read_text())
    for verb in VERBS:
        say(verb, "--help")
    say("check", "record")
    verified = json.loads(say("verify", "proof", kept["proof"], "--exact", "--all", "--json"))
    profiled = json.loads(say("verify", "proof", kept["proof"], "--profile", kept["profile"], "--all", "--json"))
    if {verified["outcome"], profiled["outcome"]} != {"accepted"}:
        sys.exit(f"an honest proof of release 0.1 isn't accepted: {verified['outcome']}, {profiled['outcome']}")
    print(f"{len(VERBS)} verbs; kernels for {', '.join(_kernels.isas())}; replays agree")


if __name__ == "__main__":
    main()
