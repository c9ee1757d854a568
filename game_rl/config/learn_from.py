"""Others' experience that a run learns from beside its own."""

import itertools
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator, Field

from game_rl.config.strict_model import Problem, StrictModel
from game_rl.config.values import (
    Count,
    Name,
    NotNegative,
    Positive,
    Timesteps,
    UnitInterval,
    named_folder,
)

_KEY = ("algorithm", "learn_from")
_GradientSteps = Annotated[int, Field(ge=1, le=10**9)]


def _absolute(path: Path) -> Path:
    return named_folder(path).absolute()  # as it is for who starts the run, and not who resumes it


class OwnShare(StrictModel):
    """From `start` at timestep 0 to `end` at `until`, in a straight line, and then `end`."""

    start: UnitInterval = 0.5
    """The share of own rows at timestep 0."""
    end: UnitInterval = 1.0
    """The share from `until` on."""
    until: Timesteps = 200_000
    """Timesteps of all envs together."""


class OfflineConfig(StrictModel):
    """Learning from the Lakes alone before the first timestep is played."""

    gradient_steps: _GradientSteps = 50_000
    """So many, and then the emulators start."""
    evaluate_every_gradient_steps: _GradientSteps = 5_000
    """Evaluations; there is one at the end in any case."""
    save_every_gradient_steps: _GradientSteps = 5_000
    """Checkpoints, of which the last and the best are kept as checkpoints.keep_last says."""


class LearnFromConfig(StrictModel):
    """Lakes of other runs that DQN learns from."""

    lakes: Annotated[
        tuple[Annotated[Path, AfterValidator(_absolute)], ...], Field(min_length=1, max_length=64)
    ]
    """Their folders, relative to the current one."""
    own_share: UnitInterval | OwnShare = OwnShare()
    """The part of each batch that is the run's own rows: a number, or {start, end, until}."""
    agents: Annotated[dict[Name, NotNegative], Field(min_length=1)] | None = None
    """Share of the rest that each stream gets, in proportion, by the id of its run or the beginning
    of it; streams that begin alike share one. null: all rows alike."""
    offline: OfflineConfig | None = None
    """Learning from the Lakes alone before the first timestep; null: none."""
    follow_every_s: Annotated[Positive, Field(ge=0.1, le=86_400)] | None = None
    """Also see what the Lakes have gained after so many seconds, while others write them; such a
    run does not repeat bit for bit. null: at checkpoints alone."""
    cache_mb: Count = 64
    """RAM for blocks of the Lakes that are decompressed, in 10^6 bytes."""

    @property
    def least_own_share(self) -> float:
        """Of all timesteps."""
        share = self.own_share
        return min(share.start, share.end) if isinstance(share, OwnShare) else share

    @property
    def most_own_share(self) -> float:
        share = self.own_share
        return max(share.start, share.end) if isinstance(share, OwnShare) else share

    def draws_from(self, stream: str) -> bool:
        if self.agents is None:
            return True
        name = agent_of(self.agents, stream)
        return name is not None and self.agents[name] > 0

    def problems_in_run(self, own_lake: Path | None) -> Iterator[Problem]:
        """What cannot work; `own_lake` is the one that the run writes."""
        if self.most_own_share == 0:
            yield Problem(
                (*_KEY, "own_share"),
                "it is 0 for the whole run, so nothing that the run plays would be learned; use at "
                "least 0.1, or learn without playing: offline: {gradient_steps: 50_000} and "
                "--until 0",
            )
        if self.least_own_share == 1 and self.offline is None:
            yield Problem(
                (*_KEY, "own_share"),
                "it is 1 for the whole run, so the Lakes are never drawn from; use less, or remove "
                "learn_from",
            )
        for number, path in enumerate(self.lakes):
            if path in self.lakes[:number]:
                yield Problem((*_KEY, "lakes"), f"{path} is there twice; name it once")
            if own_lake is not None and path == own_lake:
                yield Problem(
                    (*_KEY, "lakes"),
                    f"{path} is the Lake that this run writes, and its own timesteps are in its "
                    "replay; name others' Lakes, or give lake another path",
                    (("lake",), ("run_dir",)),
                )
        if self.agents is not None:
            yield from _agent_problems(self.agents)


def agent_of(agents: Mapping[str, float], stream: str) -> str | None:
    """The key of `agents` that names a stream, or None if no key does."""
    return next((name for name in agents if stream.startswith(name)), None)


def _agent_problems(agents: Mapping[str, float]) -> Iterator[Problem]:
    if not sum(agents.values()):
        yield Problem(
            (*_KEY, "agents"), "no stream has a share; give one a share, or remove agents"
        )
    for one, other in itertools.permutations(agents, 2):
        if other.startswith(one):
            yield Problem(
                (*_KEY, "agents"),
                f"{one} names the streams that {other} names, too; write more of its id, or "
                "remove one of them",
            )
