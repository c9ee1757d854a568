"""What a run's evaluations leave: a table for people, and the file that SB3's plots read.

`evaluations.npz` is what SB3's EvalCallback writes with `log_path`: `timesteps` [n], `results` and
`ep_lengths` [n, episodes] and, of a game that knows success, `successes` [n, episodes].
"""

import csv
import io
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from game_rl.run_dir import RunDir, write_atomic

_WAY = "deterministic"  # the column that tables of the last release lack


@dataclass
class EpisodeLists:
    """The lists that an EvalCallback keeps, one entry for each evaluation."""

    timesteps: list[int] = field(default_factory=list)
    results: list[list[float]] = field(default_factory=list)
    lengths: list[list[int]] = field(default_factory=list)
    successes: list[list[bool]] = field(default_factory=list)

    def clear(self) -> None:
        for each in (self.timesteps, self.results, self.lengths, self.successes):
            each.clear()


def append_row(run_dir: RunDir, row: Mapping[str, object]) -> None:
    """To the table, which has a header from its first row on."""
    path = run_dir.evaluations
    text = io.StringIO()
    writer = csv.DictWriter(text, fieldnames=list(row), lineterminator="\n")
    if path.exists():
        text.write(path.read_text())
    else:
        writer.writeheader()
    writer.writerow(row)
    write_atomic(path, text.getvalue())


def with_ways(table: str, *, deterministic: bool) -> str:
    """A table of the last release with the column that says how episodes were played."""
    header, *rows = table.splitlines() or [""]
    if not header or _WAY in header.split(","):
        return table
    return "\n".join([f"{header},{_WAY}", *(f"{row},{deterministic}" for row in rows), ""])


def was_deterministic(config: object) -> bool:
    """How the last release played evaluations with a saved config, which says true or false."""
    section = config.get("evaluation") if isinstance(config, dict) else None
    return not isinstance(section, dict) or section.get("deterministic") is not False


def seed_of(config: object) -> int | None:
    """What a saved config says of `evaluation.seed`; None in one of the last release."""
    section = config.get("evaluation") if isinstance(config, dict) else None
    seed = section.get("seed") if isinstance(section, dict) else None
    return seed if isinstance(seed, int) else None


def write_episodes(run_dir: RunDir, episodes: EpisodeLists) -> None:
    """As SB3 does; without `successes` where an evaluation did not have one for each episode."""
    arrays: dict[str, Any] = {
        "timesteps": episodes.timesteps,
        "results": episodes.results,
        "ep_lengths": episodes.lengths,
    }
    if [len(row) for row in episodes.successes] == [len(row) for row in episodes.results]:
        arrays["successes"] = episodes.successes
    file = io.BytesIO()
    np.savez(file, **arrays)
    write_atomic(run_dir.evaluation_episodes, file.getvalue())


def read_episodes(run_dir: RunDir) -> EpisodeLists:
    """What `write_episodes` wrote, with numbers of the same types; empty if there is no file."""
    if not run_dir.evaluation_episodes.exists():
        return EpisodeLists()
    with np.load(run_dir.evaluation_episodes) as arrays:
        return EpisodeLists(
            timesteps=arrays["timesteps"].tolist(),
            results=[list(row) for row in arrays["results"]],
            lengths=[list(row) for row in arrays["ep_lengths"]],
            successes=arrays["successes"].tolist() if "successes" in arrays else [],
        )


def restore_evaluations(run_dir: RunDir, table: str, episodes: bytes) -> None:
    """Put both files back as they were; what is empty was not there."""
    for path, content in (
        (run_dir.evaluations, table.encode()),
        (run_dir.evaluation_episodes, episodes),
    ):
        path.unlink(missing_ok=True)
        if content:
            write_atomic(path, content)
