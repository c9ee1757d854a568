"""How a run's Lake, saved replays and checkpoints grow on disk."""

from dataclasses import dataclass

from game_rl.config.algorithms import DQNConfig
from game_rl.config.schema import RunConfig
from game_rl.lake.horizon import most_on_disk
from game_rl.lake.lake_schema import lake_schema, raw_bytes
from game_rl.preflight.arithmetic import TrainingArithmetic
from game_rl.preflight.disk import kept_checkpoints_bytes
from game_rl.preflight.facts import RunFacts
from game_rl.preflight.memory import frame_format_of

_PERCENT = (1, 10, 25, 50, 100)
_SCALARS_BYTES = 1 + 4 + 1 + 1  # action, reward, ending and age, as in a Pond
_GB = 10**9


@dataclass(frozen=True)
class GrowthRow:
    """The timesteps that are kept at one moment of the run, and their bytes in several forms.

    Attributes:
        timesteps: the moment.
        kept: number of timesteps that the Lake or the replay holds.
        raw: their bytes with stacks and next stacks, as SB3's ReplayBuffer holds them.
        packed: their bytes with each frame once, in as few bits as it has information.
        on_disk: their bytes in the Lake, 0 without one; None if it was not measured how well the
            game compresses.
        checkpoints: bytes of all checkpoints that are kept, with the replay where it is saved.
    """

    timesteps: int
    kept: int
    raw: int
    packed: int
    on_disk: int | None
    checkpoints: int


def growth_rows(
    config: RunConfig, facts: RunFacts, training: TrainingArithmetic
) -> tuple[GrowthRow, ...]:
    """Return rows over the run; none for a run that keeps no timesteps on disk."""
    if config.lake is None and not config.checkpoints.save_replay_buffer:
        return ()
    updates = sorted({max(1, round(training.updates * p / 100)) for p in _PERCENT})
    return tuple(_row(config, facts, training, update) for update in updates)


def lake_bytes(config: RunConfig, facts: RunFacts, timesteps: int) -> int | None:
    """Size of the run's Lake after so many timesteps; 0 without a Lake, None if not measured."""
    each, lake = facts.lake_bytes_per_timestep, config.lake
    if lake is None:
        return 0
    if each is None:
        return None
    limit = lake.capacity_transitions
    size = each * (timesteps if limit is None else min(timesteps, most_on_disk(limit)))
    return round(size if lake.capacity_gb is None else min(size, lake.capacity_gb * _GB))


def _row(
    config: RunConfig, facts: RunFacts, training: TrainingArithmetic, updates: int
) -> GrowthRow:
    played = updates * training.timesteps_per_update
    timesteps = training.began_at + played
    packing, frame_stack = frame_format_of(config, facts).packing, config.env.frame_stack
    schema = lake_schema(packing, frame_stack=frame_stack, n_actions=facts.n_actions)
    kept, on_disk = _kept(config, timesteps), lake_bytes(config, facts, played)
    if on_disk and facts.lake_bytes_per_timestep:
        kept = min(kept, round(on_disk / facts.lake_bytes_per_timestep))
    return GrowthRow(
        timesteps=timesteps,
        kept=kept,
        raw=kept * raw_bytes(schema),
        packed=kept * (packing.nbytes + _SCALARS_BYTES),
        on_disk=on_disk,
        checkpoints=kept_checkpoints_bytes(config, facts, training, updates),
    )


def _kept(config: RunConfig, timesteps: int) -> int:
    algorithm, lake = config.algorithm, config.lake
    if lake is not None:
        return min(timesteps, lake.capacity_transitions or timesteps)
    assert isinstance(algorithm, DQNConfig)  # nothing else has a replay to save
    return min(timesteps, algorithm.replay.capacity)
