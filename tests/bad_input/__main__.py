"""`python -m tests.bad_input`: attempts every case of every corpus, and prints the outcomes.

It takes half an hour; each state that PyBoy saved takes a second.
"""

import argparse
import importlib
from collections import Counter

from tests.bad_input.case import Case, Outcome
from tests.bad_input.trials import Trials

CORPORA = ("rom_corpus", "state_corpus", "document_corpus")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("corpora", nargs="*", default=CORPORA)
    parser.add_argument("--every", type=int, default=1, help="attempt every n-th case only")
    parser.add_argument("--first", type=int, default=0, help="begin with this case")
    arguments = parser.parse_args()
    print("| Bad input | Cases | Loaded | Refused | Crashed, hung or else |")  # noqa: T201
    print("|---|--:|--:|--:|--:|")  # noqa: T201
    for corpus in arguments.corpora:
        _print_rows(corpus, arguments.first, arguments.every)


def _print_rows(corpus: str, first: int, every: int) -> None:
    cases: tuple[Case, ...] = importlib.import_module(f"tests.bad_input.{corpus}").CASES
    numbers = range(first, len(cases), every)
    rows: dict[str, Counter[bool | str]] = {}
    bad: list[Outcome] = []
    with Trials(corpus, cases) as trials:
        for number, found in zip(numbers, trials.outcomes(numbers), strict=True):
            ends = rows.setdefault(cases[number].kind, Counter())
            ends[found.end if found.is_good else "bad"] += 1
            bad += [] if found.is_good else [found]
    noun = corpus.removesuffix("_corpus")
    for kind, ends in rows.items():
        name = kind if ":" in kind or kind.startswith("--") else f"{noun}: {kind}"
        row = (name, ends.total(), ends["loaded"], ends["refused"], ends["bad"])
        print("| " + " | ".join(map(str, row)) + " |", flush=True)  # noqa: T201
    for found in bad:
        print(f"{found.end}: {found.name}: {found.message[:300]}", flush=True)  # noqa: T201


if __name__ == "__main__":
    main()
