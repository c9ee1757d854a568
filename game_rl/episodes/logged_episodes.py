"""Reading a run's logged episodes: those that no resume has superseded, and how to choose some."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import NamedTuple, overload

import numpy as np
from numpy.typing import NDArray

from game_rl.envs.episode_starts import PoolBeginning
from game_rl.episodes.button_log import EpisodeLog
from game_rl.episodes.episode_files import (
    KINDS,
    NO_NAME,
    NO_POOL_STATE,
    ROW,
    Cut,
    EpisodeBlock,
    Kind,
    LoggedState,
    PlayedUnder,
    Rows,
    blocks_of,
    read_actions,
    segments_in,
)
from game_rl.errors import UsageError
from game_rl.files.run_dir import RunDir

_PLACED = np.dtype(  # an episode's session, its block, and where its actions are in it
    [*ROW.descr, ("under", "<i4"), ("block", "<i4"), ("first", "<i8")]
)
_DAMAGED = "its actions are damaged on the disk"
_GONE = "its file has been deleted since, to make room for newer episodes"


class _PlacedState(NamedTuple):
    """A state of a pool, its block, and where it is in what the block has packed."""

    about: LoggedState
    block: int
    first: int


@dataclass(frozen=True)
class LoggedEpisode:
    """An episode of a run, as it was logged.

    Attributes:
        number: counts the run's episodes, from 1 on.
        kind: of the training, of an evaluation during it, or of the final evaluation.
        first_timestep: of the run when it began; for evaluations the timestep of the evaluation.
        timesteps: of the run when it ended; for evaluations the timestep of the evaluation.
        deterministic: whether the most probable actions were taken.
        length: timesteps of the agent.
        ending: name of the game's ending that held, or why it ended, in parentheses.
        fault: why it cannot be played again from its beginning; empty if it can.
        pool_state: number of the state of the pool in which it began; None: in a start state.
        game_timesteps, game_reward: of the game itself, without custom wrappers.
        under: under what it was played.
    """

    number: int
    kind: Kind
    env: int
    first_timestep: int
    timesteps: int
    deterministic: bool
    length: int
    reward: float
    success: bool | None
    terminated: bool
    ending: str
    start_state: str
    idle_frames: int
    game_seed: int
    game_timesteps: int
    game_reward: float
    fault: str
    pool_state: int | None
    under: PlayedUnder

    def to_json(self) -> dict[str, object]:
        left_out = ("game_timesteps", "game_reward", "under")
        return {key: value for key, value in vars(self).items() if key not in left_out}


class LoggedEpisodes(Sequence[LoggedEpisode]):
    """The episodes of a run, in the order in which they were logged; they are made when asked for.

    Attributes:
        rows: the table of them, as in `episode_files.ROW` but with names of all blocks.
        names: what `ending`, `start_state` and `fault` of the rows index.
    """

    def __init__(
        self,
        rows: Rows,
        names: Sequence[str],
        blocks: Sequence[EpisodeBlock],
        unders: Sequence[PlayedUnder],
        states: Mapping[tuple[int, int], _PlacedState],
    ) -> None:
        self.rows = rows
        self.names = names
        self._blocks = blocks
        self._unders = unders
        self._states = states  # by session and number

    def __len__(self) -> int:
        return len(self.rows)

    @overload
    def __getitem__(self, index: int) -> LoggedEpisode: ...

    @overload
    def __getitem__(self, index: slice) -> "LoggedEpisodes": ...

    def __getitem__(self, index: int | slice) -> "LoggedEpisode | LoggedEpisodes":
        if isinstance(index, slice):
            return self.at(np.arange(len(self))[index])
        return self._episode(self.rows[index])

    def at(self, indices: NDArray[np.int64]) -> "LoggedEpisodes":
        """Return the episodes at these indices, in this order."""
        return LoggedEpisodes(
            self.rows[indices], self.names, self._blocks, self._unders, self._states
        )

    def first_timesteps(self) -> NDArray[np.int64]:
        """Return the `first_timestep` of each episode, int64 [n]."""
        n_envs = np.array([under.n_envs for under in self._unders], np.int64)
        ended = self.rows["timesteps"].astype(np.int64)
        played = self.rows["length"].astype(np.int64) * n_envs[self.rows["under"]]
        is_training = self.rows["kind"] == KINDS.index("training")
        return np.where(is_training, np.maximum(ended - played, 0), ended)

    def numbered(self, numbers: Iterable[int]) -> "LoggedEpisodes":
        """Return the episodes with these numbers, in this order.

        Raises:
            UsageError: there is no such episode.
        """
        places = {int(number): place for place, number in enumerate(self.rows["number"])}
        found = []
        for number in numbers:
            if number not in places:
                kept = ": none is logged"
                if len(self):
                    first = int(self.rows["number"].min())
                    kept = f"; those from {first:,} to {self.rows['number'].max():,} are kept"
                    if first > 1:
                        kept += "; older ones were deleted to stay within episodes.limit_mb"
                raise UsageError(f"there is no episode {number:,}{kept}")
            found.append(places[number])
        return self.at(np.array(found, np.int64))

    def log(self, index: int) -> EpisodeLog:
        """Read an episode's actions, and return it as its env logged it."""
        episode = self[index]
        row = self.rows[index]
        start = int(row["first"])
        middle = int(row["first"]) + int(row["played_bytes"])
        fault = episode.fault
        actions = b""
        beginning = None
        if not fault:
            try:
                found = read_actions(self._blocks[row["block"]])
                if episode.pool_state is not None:
                    beginning = self._beginning(int(row["under"]), episode.pool_state)
            except FileNotFoundError:
                fault = _GONE
            else:
                if found is None or (beginning is None) != (episode.pool_state is None):
                    fault = _DAMAGED
                actions = found or b""
        return EpisodeLog(
            start_state=episode.start_state,
            idle_frames=episode.idle_frames,
            game_seed=episode.game_seed,
            timesteps=episode.game_timesteps,
            played=actions[start:middle],
            chosen=actions[middle : middle + int(row["chosen_bytes"])],
            game_reward=episode.game_reward,
            fault=fault,
            beginning=beginning,
        )

    def _beginning(self, under: int, number: int) -> PoolBeginning | None:
        """Read a state of a pool; None if it is damaged."""
        if (under, number) not in self._states:
            return None
        about, block, first = self._states[under, number]
        found = read_actions(self._blocks[block])
        if found is None:
            return None
        return PoolBeginning(
            number=number,
            state=found[first : first + about.bytes],
            start_state=about.start_state,
            reward=about.reward,
            timesteps=about.timesteps,
        )

    def _episode(self, row: np.void) -> LoggedEpisode:
        under = self._unders[row["under"]]
        kind = KINDS[row["kind"]]
        ended = int(row["timesteps"])
        length = int(row["length"])
        is_played = kind == "training"
        return LoggedEpisode(
            number=int(row["number"]),
            kind=kind,
            env=int(row["env"]),
            first_timestep=max(0, ended - length * under.n_envs) if is_played else ended,
            timesteps=ended,
            deterministic=bool(row["deterministic"]),
            length=length,
            reward=float(row["reward"]),
            success=None if row["success"] < 0 else bool(row["success"]),
            terminated=bool(row["terminated"]),
            ending=self._name(row["ending"]),
            start_state=self._name(row["start_state"]),
            idle_frames=int(row["idle_frames"]),
            game_seed=int(row["game_seed"]),
            game_timesteps=int(row["game_timesteps"]),
            game_reward=float(row["game_reward"]),
            fault=self._name(row["fault"]),
            pool_state=None if row["pool_state"] == NO_POOL_STATE else int(row["pool_state"]),
            under=under,
        )

    def _name(self, index: int) -> str:
        return "" if index == NO_NAME else self.names[index]


def read_episodes_of(folder: Path, *, cut: Cut | None = None) -> LoggedEpisodes:
    """Return the episodes of a folder of segments.

    Args:
        cut: what a session that begins now supersedes.

    Raises:
        UsageError: a segment was written by another version.
    """
    tables: list[Rows] = [np.zeros(0, _PLACED)]
    names: dict[str, int] = {}  # of all blocks
    blocks: list[EpisodeBlock] = []
    unders: list[PlayedUnder] = []
    states: dict[tuple[int, int], _PlacedState] = {}
    for block in chain.from_iterable(map(blocks_of, segments_in(folder))):
        if block.under is not None:
            if block.under.cut is not None:
                tables = [table[block.under.cut.keeps(table)] for table in tables]
            unders.append(block.under)
        elif unders:
            rows = np.zeros(len(block.rows), _PLACED)
            for column in ROW.names or ():
                rows[column] = block.rows[column]
            own = [names.setdefault(name, len(names)) for name in block.names]
            known = np.array([*own, NO_NAME], np.int32)  # index -1 stays what it is
            for column in ("ending", "start_state", "fault"):
                rows[column] = known[rows[column]]
            sizes = rows["played_bytes"].astype(np.int64) + rows["chosen_bytes"]
            rows["first"] = np.cumsum(sizes) - sizes
            rows["block"] = len(blocks)
            at = int(sizes.sum())
            for state in block.states:
                states[len(unders) - 1, state.number] = _PlacedState(state, len(blocks), at)
                at += state.bytes
            rows["under"] = len(unders) - 1
            tables.append(rows)
            blocks.append(block._replace(rows=block.rows[:0]))
    if cut is not None:
        tables = [table[cut.keeps(table)] for table in tables]
    return LoggedEpisodes(np.concatenate(tables), list(names), blocks, unders, states)


def read_logged_episodes(run_dir: RunDir) -> LoggedEpisodes:
    """Return the logged episodes of a run that are not superseded; none if it logs none.

    Raises:
        UsageError: a file of them was written by another version.
    """
    return read_episodes_of(run_dir.episodes)


@dataclass(frozen=True, kw_only=True)
class EpisodeChoice:
    """Which logged episodes are meant.

    Attributes:
        kinds: of which kinds; of evaluations, best and worst are chosen in each evaluation.
        first, last: those that ended at or between these timesteps of the run; None: no bound.
        start_states: those that began in one of them; None: in any.
        best, worst: the ones with the highest and the lowest rewards; of equals the earlier. With
            neither, the first ones.
        most: how many, of best and worst each; None: all.
        only_playable: leave out those that cannot be played again.
    """

    kinds: tuple[Kind, ...] = ("training",)
    first: int | None = None
    last: int | None = None
    start_states: Collection[str] | None = None
    best: bool = False
    worst: bool = False
    most: int | None = None
    only_playable: bool = False

    def of(self, episodes: LoggedEpisodes) -> LoggedEpisodes:
        """Return the chosen ones: the best, then the worst, or all in their order."""
        rows = episodes.rows
        fits = np.isin(rows["kind"], [KINDS.index(kind) for kind in self.kinds])
        if self.first is not None:
            fits &= rows["timesteps"] >= self.first
        if self.last is not None:
            fits &= rows["timesteps"] <= self.last
        if self.start_states is not None:
            known = [n for n, name in enumerate(episodes.names) if name in self.start_states]
            fits &= np.isin(rows["start_state"], known)
        if self.only_playable:
            fits &= rows["fault"] == NO_NAME
        indices = np.flatnonzero(fits)
        if not (self.best or self.worst):
            return episodes.at(indices[: self.most])
        groups = [indices]
        if "training" not in self.kinds:
            each = rows[["timesteps", "kind"]][indices]
            groups = [indices[each == one] for one in np.unique(each)]
        found = [self._extremes(rows["reward"], group) for group in groups]
        return episodes.at(np.concatenate([indices[:0], *found]))

    def _extremes(
        self, rewards: NDArray[np.float32], indices: NDArray[np.int64]
    ) -> NDArray[np.int64]:
        own = rewards[indices]
        best = indices[np.argsort(-own, kind="stable")][: self.most if self.best else 0]
        worst = indices[np.argsort(own, kind="stable")][: self.most if self.worst else 0]
        return np.concatenate([best, worst])
