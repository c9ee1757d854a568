"""Files of a run's evaluations: a table for people, and the file that SB3's plots read.

`evaluations.npz` is the file that SB3's EvalCallback writes with `log_path`: `timesteps` [n],
`results` and `ep_lengths` [n, episodes] and, if the game defines success, `successes`
[n, episodes].
"""

import csv
import io
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from game_rl.files.durable_files import write_atomic
from game_rl.files.run_dir import RunDir

_WAY = "deterministic"  # a column that tables of the last release lack


@dataclass
class EpisodeLists:
    """The lists of SB3's EvalCallback, with an entry for each evaluation."""

    timesteps: list[int] = field(default_factory=list)
    results: list[list[float]] = field(default_factory=list)
    lengths: list[list[int]] = field(default_factory=list)
    successes: list[list[bool]] = field(default_factory=list)

    def clear(self) -> None:
        for each in (self.timesteps, self.results, self.lengths, self.successes):
            each.clear()


def append_row(run_dir: RunDir, row: Mapping[str, object]) -> None:
    """Append a row to the table of evaluations, and write the header before the first row."""
    path = run_dir.evaluations
    text = io.StringIO()
    writer = csv.DictWriter(text, fieldnames=list(row), lineterminator="\n")
    if path.exists():
        text.write(path.read_text(encoding="utf-8"))
    else:
        writer.writeheader()
    writer.writerow(row)
    write_atomic(path, text.getvalue())


def with_ways(table: str, *, deterministic: bool) -> str:
    """Add the column `deterministic` to a table of the last release; leave others as they are."""
    header, *rows = table.splitlines() or [""]
    if not header or _WAY in header.split(","):
        return table
    return "\n".join([f"{header},{_WAY}", *(f"{row},{deterministic}" for row in rows), ""])


def was_deterministic(config: object) -> bool:
    """Return how the last release played evaluations with a saved config."""
    section = config.get("evaluation") if isinstance(config, dict) else None
    return not isinstance(section, dict) or section.get("deterministic") is not False


def seed_of(config: object) -> int | None:
    """Return `evaluation.seed` of a saved config; None if it has none, as in the last release."""
    section = config.get("evaluation") if isinstance(config, dict) else None
    seed = section.get("seed") if isinstance(section, dict) else None
    return seed if isinstance(seed, int) else None


def write_episodes(run_dir: RunDir, episodes: EpisodeLists) -> None:
    """Write the file as SB3 does.

    `successes` is left out unless each evaluation has one for each episode.
    """
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
    """Read the file, with numbers of the types that were written; empty if there is no file."""
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
    """Restore both files; an empty content means that the file did not exist."""
    for path, content in (
        (run_dir.evaluations, table.encode()),
        (run_dir.evaluation_episodes, episodes),
    ):
        path.unlink(missing_ok=True)
        if content:
            write_atomic(path, content)
