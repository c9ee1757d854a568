"""`python -m tests.bad_input`: attempts every case of every corpus and prints what happened."""

import argparse
import importlib
from collections import Counter

from tests.bad_input.case import Case, Outcome
from tests.bad_input.trials import Trials

CORPORA = ("rom_corpus",)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("corpora", nargs="*", default=CORPORA)
    parser.add_argument("--every", type=int, default=1, help="attempt every n-th case only")
    parser.add_argument("--first", type=int, default=0, help="begin with this case")
    arguments = parser.parse_args()
    for corpus in arguments.corpora:
        cases: tuple[Case, ...] = importlib.import_module(f"tests.bad_input.{corpus}").CASES
        counts: dict[str, Counter[str]] = {}
        numbers = range(arguments.first, len(cases), arguments.every)
        with Trials(corpus, cases) as trials:
            for number, outcome in zip(numbers, trials.outcomes(numbers), strict=True):
                counts.setdefault(cases[number].kind, Counter())[outcome.end] += 1
                _tell_bad(outcome)
        for kind, ends in counts.items():
            print(f"| {kind} | {ends.total()} | {dict(ends)} |")  # noqa: T201


def _tell_bad(outcome: Outcome) -> None:
    if not outcome.is_good:
        print(f"{outcome.end}: {outcome.name}: {outcome.message[:300]}")  # noqa: T201


if __name__ == "__main__":
    main()
