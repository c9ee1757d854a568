"""The section `learn_from`: Lakes of other runs, from which a run learns beyond its own play."""

import itertools
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator, Field

from game_rl.config.strict_model import Problem, Role, RunSection, StrictModel
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
    return named_folder(path).absolute()  # a resume may have another current folder


class OwnShare(StrictModel):
    """A share that goes in a straight line from `start` at timestep 0 to `end` at `until`."""

    start: UnitInterval = 0.5
    """Share of the run's own rows at timestep 0."""
    end: UnitInterval = 1.0
    """Share of the run's own rows from `until` on."""
    until: Timesteps = 200_000
    """Timestep at which the line ends, counted over all envs."""


class OfflineConfig(RunSection):
    """A phase of learning from the Lakes alone, before the run plays its first timestep."""

    gradient_steps: Annotated[_GradientSteps, Role.BUDGET] = 50_000
    """Number of gradient steps in this phase."""
    evaluate_every_gradient_steps: Annotated[_GradientSteps, Role.BUDGET] = 5_000
    """Gradient steps from one evaluation to the next; there is always one at the end."""
    save_every_gradient_steps: Annotated[_GradientSteps, Role.OUTPUT] = 5_000
    """Gradient steps from one checkpoint to the next. The newest checkpoints.keep_last of them are
    kept, and the best."""


class LearnFromConfig(RunSection):
    """Lakes of other runs that DQN learns from."""

    lakes: Annotated[
        tuple[Annotated[Path, AfterValidator(_absolute)], ...],
        Field(min_length=1, max_length=64),
        Role.LEARNING,
    ]
    """Folders of the Lakes, relative to the current folder."""
    own_share: Annotated[UnitInterval | OwnShare, Role.LEARNING] = OwnShare()
    """Share of each batch that is the run's own rows: a number, or {start, end, until}."""
    agents: Annotated[
        Annotated[dict[Name, NotNegative], Field(min_length=1)] | None, Role.LEARNING
    ] = None
    """Shares of the streams in the rest of each batch, in proportion, by the id of a run or its
    beginning; streams whose ids start alike share one. Streams without a share are not drawn. null:
    every row is drawn with the same probability."""
    offline: Annotated[OfflineConfig | None, Role.BUDGET] = None
    """A phase of learning from the Lakes alone, before the first timestep; null: no such phase."""
    follow_every_s: Annotated[
        Annotated[Positive, Field(ge=0.1, le=86_400)] | None, Role.LEARNING
    ] = None
    """Seconds after which the run looks for new rows in the Lakes, while other runs write them. It
    then does not repeat bit for bit. null: it looks only at checkpoints."""
    cache_mb: Annotated[Count, Role.SPEED] = 64
    """RAM for decompressed blocks of the Lakes, in 10^6 bytes."""

    @property
    def least_own_share(self) -> float:
        """The smallest share of own rows at any timestep."""
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
        """Yield what cannot work; `own_lake` is the Lake that the run writes, if it writes one."""
        if self.most_own_share == 0:
            yield Problem(
                (*_KEY, "own_share"),
                "it is 0 for the whole run, so the run would learn nothing from its own play; use "
                "at least 0.1, or learn without playing: offline: {gradient_steps: 50_000} and "
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
                yield Problem((*_KEY, "lakes"), f"{path} is named twice; name it once")
            if own_lake is not None and path == own_lake:
                yield Problem(
                    (*_KEY, "lakes"),
                    f"{path} is the Lake that this run writes, and its replay has these timesteps "
                    "already; name Lakes of other runs, or give lake another path",
                    (("lake",), ("run_dir",)),
                )
        agents = self.agents or {}
        if self.agents is not None and not sum(agents.values()):
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


def agent_of(agents: Mapping[str, float], stream: str) -> str | None:
    """Return the key of `agents` that names the stream, or None if no key does."""
    return next((name for name in agents if stream.startswith(name)), None)
