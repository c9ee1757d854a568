"""The section `learn_from`: what a run learns from beside its own play, Lakes and played episodes.

DQN learns from Lakes of other runs, and every algorithm from episodes that a person has played.
"""

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


class CloningConfig(StrictModel):
    """Imitation before the first timestep: the network learns to choose what the player chose."""

    n_epochs: Annotated[int, Field(ge=1, le=1_000)] = 100
    """Largest number of passes over the played timesteps."""
    held_out: Annotated[float, Field(gt=0, le=0.5)] = 0.1
    """Share of the played timesteps that is held out, in contiguous pieces, to judge each pass."""
    no_improvement_epochs: Count = 2
    """Number of passes in a row that may bring no lower loss on the held-out timesteps; one more
    ends the phase. The weights of the best pass are kept."""


class ImitateConfig(StrictModel):
    """Imitation while the run plays: each gradient step also learns from played timesteps."""

    share: Annotated[float, Field(gt=0, le=1)] = 0.25
    """Number of played timesteps in a gradient step, as a share of batch_size."""
    weight: Positive = 0.5
    """Weight of the cross-entropy to the player's actions at timestep 0."""
    fraction: Annotated[float, Field(gt=0, le=1)] = 0.5
    """Part of total_timesteps in which the weight falls to 0, in a straight line."""


class QImitateConfig(StrictModel):
    """Demonstrations that stay in the replay, with a large margin for the player's action.

    weight x (max_a [Q(s, a) + margin (a is not the player's)] - Q(s, the player's)) is added to the
    loss of each played timestep (Hester et al. 2018).
    """

    share: Annotated[float, Field(gt=0, lt=1)] = 0.25
    """Played timesteps as a share of each batch. With pqn they are added to the batch."""
    margin: Positive = 0.8
    """Margin by which the value of the player's action should exceed the other values, in units of
    the return."""
    weight: Positive = 1.0
    """Weight of the margin loss at timestep 0."""
    fraction: Annotated[float, Field(gt=0, le=1)] | None = None
    """Part of total_timesteps in which the weight falls to 0, in a straight line; null: it stays.
    The timesteps stay in the batches in any case."""


_Pattern = Annotated[Path, AfterValidator(_absolute)]


class PlayedConfig(RunSection):
    """Episodes that a person or a script has played and recorded."""

    episodes: Annotated[
        _Pattern | Annotated[tuple[_Pattern, ...], Field(min_length=1, max_length=1_000)],
        Field(examples=["mine/*.json", "pretrained:duel"]),
        Role.LEARNING,
    ]
    """Files of recorded episodes, relative to the current folder: a path, a pattern such as
    mine/*.json, a folder, an agent that brings some, such as pretrained:duel, or a list of these.
    They are copied into run_dir."""
    clone: Annotated[CloningConfig | None, Role.LEARNING] = CloningConfig()
    """Imitation before the first timestep; null: none."""

    @property
    def patterns(self) -> tuple[Path, ...]:
        """The paths, patterns and folders."""
        return self.episodes if isinstance(self.episodes, tuple) else (self.episodes,)


class PlayedForPPO(PlayedConfig):
    """Episodes that a person or a script has played and recorded, for PPO."""

    imitate: Annotated[ImitateConfig | None, Role.LEARNING] = ImitateConfig()
    """Imitation while the run plays, which fades; null: none."""


class PlayedForQ(PlayedConfig):
    """Episodes that a person or a script has played and recorded, for DQN and PQN."""

    imitate: Annotated[QImitateConfig | None, Role.LEARNING] = QImitateConfig()
    """Demonstrations in every batch while the run plays; null: none."""


class PPOLearnFrom(RunSection):
    """What PPO learns from beside its own play."""

    played: Annotated[PlayedForPPO, Role.LEARNING]
    """Episodes that a person or a script has played and recorded."""


class PQNLearnFrom(RunSection):
    """What PQN learns from beside its own play."""

    played: Annotated[PlayedForQ, Role.LEARNING]
    """Episodes that a person or a script has played and recorded."""


class LearnFromConfig(RunSection):
    """What DQN learns from beside its own play: Lakes of other runs, and played episodes."""

    lakes: Annotated[
        tuple[Annotated[Path, AfterValidator(_absolute)], ...],
        Field(max_length=64),
        Role.LEARNING,
    ] = ()
    """Folders of the Lakes, relative to the current folder; []: none."""
    played: Annotated[PlayedForQ | None, Role.LEARNING] = None
    """Episodes that a person or a script has played and recorded; null: none."""
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
    """Seconds after which the run looks for new rows in the Lakes, while other runs write them. The
    run is then not reproducible bit for bit. null: it looks only at checkpoints."""
    cache_mb: Annotated[Count, Role.SPEED] = 64
    """RAM for decompressed blocks of the Lakes, in 10^6 bytes."""

    def problems(self) -> Iterator[Problem]:
        if not self.lakes and self.played is None:
            yield Problem(
                ("lakes",),
                "there is nothing to learn from; name Lakes of other runs, or episodes that you "
                "have played: played: {episodes: mine/*.json}",
                (("played",),),
            )
        elif not self.lakes and self.offline is not None:
            yield Problem(
                ("offline",),
                "it learns from Lakes, and none are named; name some in lakes, or remove offline: "
                "played.clone comes before the first timestep, too",
                (("lakes",),),
            )
        elif self.offline is not None and self.played is not None and self.played.clone is not None:
            yield Problem(
                ("played", "clone"),
                "it and offline both come before the first timestep; write played.clone: null, or "
                "remove offline",
                (("offline",),),
            )

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
