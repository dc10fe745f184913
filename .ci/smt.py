#!/usr/bin/env python3
"""The solver bitwuzla behind a command line: reads one SMT-LIB file, prints the answer and, if there is one, a model. Wants the audit's packages."""

import sys

import bitwuzla


def main(path: str) -> None:
    """Solve the file."""
    options = bitwuzla.Options()
    options.set(bitwuzla.Option.PRODUCE_MODELS, 1)
    parser = bitwuzla.Parser(bitwuzla.TermManager(), options)
    try:
        parser.parse(path)
    except bitwuzla.BitwuzlaException as error:
        # After "unsat" there is no model to get: the answer has been printed already.
        if "get-model" not in str(error) and "model" not in str(error):
            raise


if __name__ == "__main__":
    main(sys.argv[-1])
