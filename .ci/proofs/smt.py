#!/usr/bin/env python3
"""Two solvers behind one command line: reads an SMT-LIB file, prints the first answer and a model if there is one.

yices is quick where terms simplify, bitwuzla with shifts and sums of wide words, and it alone knows floating point.
"""

import ctypes
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import bitwuzla

PR_SET_PDEATHSIG = 1
ANSWERS = ("sat", "unsat")


def follow() -> None:
    """Let the kernel end this process with its parent, however that ends."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def main(path: str) -> None:
    """Solve the file."""
    follow()
    with tempfile.TemporaryFile("w+") as output:
        command = [str(Path(sys.executable).parent / "yices-smt2"), "--smt2-model-format", path]
        # preexec_fn is safe: there is one thread.
        other = subprocess.Popen(command, stdout=output, stderr=subprocess.DEVNULL, preexec_fn=follow)  # noqa: PLW1509

        def answer() -> str:
            output.seek(0)
            return output.read()

        def overtaken() -> bool:
            return other.poll() is not None and answer().split("\n")[0] in ANSWERS

        options = bitwuzla.Options()
        options.set(bitwuzla.Option.PRODUCE_MODELS, 1)
        parser = bitwuzla.Parser(bitwuzla.TermManager(), options)
        parser.configure_terminator(overtaken)
        # Only the commands before the question: asked here, the answer can be held back if the other solver has one.
        text = Path(path).read_text()
        formula = text.partition("(check-sat)")[0]
        parser.parse(formula, parse_file=False)
        result = parser.bitwuzla().check_sat()
        if overtaken():
            print(answer())
            return
        other.kill()
        if result == bitwuzla.Result.SAT and "(get-model)" in text:
            # Only a parser that has read the question prints a model. halmos needs it: without one it would not see
            # that the answer rests on a product left unknown, and would take it for a counterexample.
            again = bitwuzla.Parser(bitwuzla.TermManager(), options)
            again.parse(path)
        else:
            print({bitwuzla.Result.SAT: "sat", bitwuzla.Result.UNSAT: "unsat"}.get(result, "unknown"))


if __name__ == "__main__":
    main(sys.argv[-1])
