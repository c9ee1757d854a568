"""The reward of getting nearer to a game's end, by the timesteps that are still to go from a cell.

The potential of a cell is minus its timesteps to go, and a timestep earns the difference of the
potentials after and before it (Ng, Harada and Russell 1999, "Policy invariance under reward
transformations", with a discount of 1). So no loop pays, and what an episode earns depends on where
it begins and ends alone.
"""

import json
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from pydantic import Field

from game_rl.files.saved import Blob, Saved
from game_rl.games.cell import Cell, CoarseVariable, cell_reader
from game_rl.games.reward_term import RewardTerm, WatchedTermState
from game_rl.games.variables import Values


@dataclass(frozen=True)
class Potential:
    """How many timesteps are still to go from each cell of an exploration.

    Attributes:
        folder: the exploration's, as the reward term names it.
        cell: what makes two moments the same.
        frame_skip: frames of a timestep of the exploration.
        to_go: timesteps of the exploration by cell; cells from which there is no way are missing.
    """

    folder: Path
    cell: tuple[CoarseVariable, ...]
    frame_skip: int
    to_go: Mapping[Cell, int]

    @property
    def variables(self) -> frozenset[str]:
        """Names of the variables that a cell is read from."""
        return frozenset(entry.variable for entry in self.cell)

    def saved(self) -> "SavedPotential":
        """Return it for a file; equal potentials give equal bytes."""
        rows = [[*cell, timesteps] for cell, timesteps in sorted(self.to_go.items())]
        return SavedPotential(
            folder=str(self.folder),
            cell=self.cell,
            frame_skip=self.frame_skip,
            to_go=zlib.compress(json.dumps(rows, separators=(",", ":")).encode()),
        )


class SavedPotential(Saved):
    """A potential in a file."""

    folder: str
    cell: tuple[CoarseVariable, ...]
    frame_skip: Annotated[int, Field(ge=1)]
    to_go: Blob
    """Compressed JSON: for each cell its numbers and its timesteps to go."""

    def potential(self) -> Potential:
        """Return what was saved.

        Raises:
            ValueError: it is damaged.
        """
        try:
            rows = json.loads(zlib.decompress(self.to_go))
            to_go = {tuple(map(int, row[:-1])): int(row[-1]) for row in rows}
        except (zlib.error, TypeError, IndexError) as error:
            raise ValueError(f"its cells cannot be read ({error})") from None
        return Potential(Path(self.folder), self.cell, self.frame_skip, to_go)


class PotentialTerm:
    """A reward term with a potential, in one running episode.

    In cells that the potential does not know it earns nothing. The next known one is compared with
    the last known one, or with nothing if there was none in the episode.

    Args:
        frame_skip: frames of a timestep of the episode, in which progress is counted.

    Attributes:
        variables: names of the variables that it reads.
    """

    def __init__(self, term: RewardTerm, potential: Potential, frame_skip: int) -> None:
        self._term = term
        self._cell_of = cell_reader(potential.cell)
        self._to_go = potential.to_go
        self._timesteps = potential.frame_skip / frame_skip
        self.variables = potential.variables
        self._of = (term.on, *sorted(potential.variables))
        self._last: int | None = None

    def reset(self, values: Values) -> None:
        self._last = self._to_go.get(self._cell_of(values))

    def step(self, values: Values, before: Values) -> float:  # noqa: ARG002 - as of other terms
        """Return the reward of a timestep, after which the variables are these."""
        now = self._to_go.get(self._cell_of(values))
        last = self._last
        if now is None or now == last:
            return 0.0
        self._last = now
        if last is None:
            return 0.0
        return self._term.reward(last, now) * self._timesteps

    def save_state(self) -> WatchedTermState:
        return WatchedTermState(of=self._of, best=self._last)

    def load_state(self, state: WatchedTermState) -> None:
        self._last = None
        if state.of == self._of and state.best is not None:
            self._last = int(state.best)
