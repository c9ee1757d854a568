"""The numbers that an estimate needs besides the config: game, machine, Lakes, parent of a fork."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from shlex import quote
from statistics import mean, median
from typing import Literal

from game_rl.algorithms.sizes import NetworkSize
from game_rl.config.schema import RunConfig, check_image_size
from game_rl.config.values import run_at
from game_rl.envs.episode_starts import game_changes
from game_rl.envs.make_env import check_env_config, make_observation_format, observation_format
from game_rl.envs.observation import ObservationFormat
from game_rl.errors import CheckpointError, ConfigError, UsageError
from game_rl.explore.potentials import explored_folder
from game_rl.features.feature import PlannedRun
from game_rl.files.pretrained import run_name
from game_rl.files.run_dir import RunDir
from game_rl.games.definition import Game
from game_rl.games.parts.part_format import PartFormat
from game_rl.games.screen_area import CropSpec
from game_rl.lake.lake_feed import check_level
from game_rl.lake.lake_schema import LakeSchema
from game_rl.lake.mark import Mark
from game_rl.lake.origin import LakeRows, check_agreement
from game_rl.played.played_files import PlayedSize, played_size
from game_rl.pool.pool_source import recorded_files
from game_rl.preflight import calibration
from game_rl.preflight.workload import TrainingArithmetic, boundaries_of, training_arithmetic
from game_rl.system.import_cost import USUAL_IMPORT_COST
from game_rl.system.machine import Machine, is_same_disk, nearest_folder
from game_rl.system.placement import USUAL_CACHE_BYTES, Bf16Way, find_placement
from game_rl.vec_env.workers import evaluation_workers, training_workers

# Assumed length of an episode without a measurement: fights and levels of arcade games take 7 to 33
# seconds, and a trained agent's are the shorter ones.
_USUAL_EPISODE_FRAMES = 1_000
_VALUES_OF_A_PIXEL = 256
_EPISODES_IN_A_LOG = 4  # SB3's off-policy algorithms write their curves every 4 episodes


@dataclass(frozen=True, kw_only=True)
class ForkFacts:
    """The checkpoint that a fork begins from, and the files that it takes over.

    Attributes:
        began_at: the timestep at which the fork begins.
        copied_bytes: bytes of copied files: curves, tables and events.
        shared_bytes: bytes of the parent's checkpoint and of the Lake's segments that it needs.
        is_linked: whether those are hard links, which take no space again.
    """

    began_at: int
    copied_bytes: int
    shared_bytes: int
    is_linked: bool


@dataclass(frozen=True, kw_only=True)
class RunFacts:
    """A game and a machine as numbers.

    Attributes:
        crop: the part of the screen that the agent sees.
        n_game_curves: number of the game's variables and endings, each a curve in TensorBoard, and
            of its reward terms, each two.
        cpus: number of CPUs that the run may use.
        uses_gpu: whether the network is on a GPU.
        uses_bf16: whether its convolutions are computed in bfloat16.
        episode_timesteps: usual length of an episode, measured or assumed.
        lake_bytes_per_timestep: bytes that a timestep takes in a Lake on disk, or None if they were
            not measured.
        learned_lakes: size of the Lakes that the run learns from.
        played: size of the played episodes that the run learns from.
        cache_bytes: a CPU's share of the cache level in which that share is largest.
        bf16_way: how torch multiplies bfloat16 on the CPU.
        import_bytes: memory of a process that has imported the libraries of a training.
        fork: the fork's files and timestep; None if the run is not a fork.
        game_changes: how start states change the game, in words.
        part_formats: the parts that the game's observations can have, by name.
        has_waits: whether the game's `step` makes timesteps longer than `frame_skip`.
        longest_wait_frames: frames that the game's `step` may add to a timestep.
        has_places: whether the game names a `place`, so that visited places are counted.
        n_potentials: number of reward terms with a potential.
        n_novelty_terms: number of reward terms with `per_run`.
        missing_explorations: folders that are not there, by the keys that name them.
    """

    crop: CropSpec
    n_actions: int
    four_shades: bool
    rom_bytes: int
    n_game_curves: int
    cpus: int
    uses_gpu: bool
    uses_bf16: bool
    episode_timesteps: int
    lake_bytes_per_timestep: float | None = None
    learned_lakes: LakeRows = field(default_factory=LakeRows)
    played: PlayedSize = field(default_factory=PlayedSize)
    cache_bytes: int = USUAL_CACHE_BYTES
    bf16_way: Bf16Way = "native"
    import_bytes: int = USUAL_IMPORT_COST.bytes
    fork: ForkFacts | None = None
    game_changes: tuple[str, ...] = ()
    part_formats: Mapping[str, PartFormat] = field(default_factory=dict)
    has_waits: bool = False
    longest_wait_frames: int = 0
    has_places: bool = False
    n_potentials: int = 0
    n_novelty_terms: int = 0
    missing_explorations: Mapping[str, Path] = field(default_factory=dict)

    @property
    def began_at(self) -> int:
        """Timestep at which the run begins."""
        return 0 if self.fork is None else self.fork.began_at

    @property
    def precision(self) -> Literal["bf16", "float32"]:
        """The numbers that convolutions are computed in."""
        return "bf16" if self.uses_bf16 else "float32"

    def observation_format(self, config: RunConfig) -> ObservationFormat:
        """Return the format of the observations; not stored, as `config` may be a proposal."""
        return observation_format(
            config.env, crop=self.crop, four_shades=self.four_shades, parts=self.part_formats
        )

    def planned(self, config: RunConfig, training: TrainingArithmetic | None = None) -> PlannedRun:
        """Return the run as the forecasts of its features need it."""
        if training is None:
            training = training_arithmetic(config, began_at=self.began_at)
        seen = self.observation_format(config)
        network = NetworkSize.of(seen, config.algorithm, n_actions=self.n_actions)
        points = training.updates
        if config.algorithm.replay is not None:
            points = training.played_timesteps // (self.episode_timesteps * _EPISODES_IN_A_LOG)
        return PlannedRun(
            config=config,
            observation_format=seen,
            n_actions=self.n_actions,
            four_shades=self.four_shades,
            n_workers=training_workers(
                config.env.n_workers, n_envs=config.env.n_envs, cpus=self.cpus
            ),
            has_places=self.has_places,
            n_potentials=self.n_potentials,
            n_novelty_terms=self.n_novelty_terms,
            n_processes=1 + _n_workers(config, self.cpus),
            has_waits=self.has_waits,
            episode_timesteps=self.episode_timesteps,
            learned_blocks=self.learned_lakes.blocks,
            demonstrated_rows=self.played.rows,
            played_bytes=self.played.file_bytes,
            played_timesteps=training.played_timesteps,
            final_timesteps=training.final_timesteps,
            boundaries=boundaries_of(config, training),
            evaluations=training.evaluations,
            checkpoints=training.checkpoints,
            curve_numbers=points * self.curve_numbers_of_a_point,
            policy_bytes=network.policy_bytes,
            acting_bytes=network.weights_bytes + network.kept_weights_bytes(bf16=self.uses_bf16),
        )

    @property
    def curve_numbers_of_a_point(self) -> int:
        """Number of curves that every update, or every few episodes, adds to."""
        return calibration.UPDATE_NUMBERS + self.n_game_curves


@dataclass(frozen=True)
class EpisodeLengths:
    """Lengths of episodes in random play, in timesteps."""

    timesteps: tuple[int, ...]

    @property
    def median(self) -> float:
        return median(self.timesteps)

    @property
    def mean(self) -> float:
        return mean(self.timesteps)


@dataclass(frozen=True)
class MeasuredLake:
    """Size of a timestep in a Lake of random play.

    Agents that see more of a game leave frames that compress less.

    Attributes:
        levels: what other compression levels cost; empty if that was not measured.
    """

    timesteps: int
    bytes_per_timestep: float
    levels: tuple["LevelCost", ...] = ()


@dataclass(frozen=True)
class LevelCost:
    """What a compression level of a Lake costs, with the same timesteps for each level."""

    level: int
    bytes_per_timestep: float
    seconds_per_million: float


def run_facts(
    config: RunConfig,
    game: Game,
    machine: Machine,
    probe: EpisodeLengths | None = None,
    lake: MeasuredLake | None = None,
) -> RunFacts:
    """Collect the numbers of this game and machine for `estimate`.

    Args:
        probe: measured lengths of episodes; None: a usual length is assumed.
        lake: measured size of a timestep in a Lake, if it was measured.

    Raises:
        ConfigError: the network cannot take pictures of this size, or the game's crop cannot be
            halved.
        UsageError: the game has no such start state or variable, its episodes would never end, it
            does not define success, the run's Lake has another compression level, or the fork's
            parent has no such checkpoint.
        UsageError: a played episode to learn from is missing, or of another game or frame skip.
        LakeError: a Lake to learn from is missing or empty, or its rows do not fit the run.
    """
    definition = game.definition
    check_env_config(config.env, game)
    rate = None if config.stop_when is None else config.stop_when.success_rate
    if rate is not None and definition.success is None:
        raise UsageError(
            f"stop_when.success_rate is {rate:g}, but {game.name} does not define success; write "
            "stop_when: {mean_reward: ...}, or give its game.yaml a success condition"
        )
    check_level(config)
    seen = make_observation_format(config.env, game)
    if seen.screen is not None:
        channels, height, width = seen.shape
        network = config.algorithm.network
        check_image_size(height, width, channels=channels, network=network)
    _check_grids(seen)
    assumed = max(_USUAL_EPISODE_FRAMES // config.env.frame_skip, 1)
    fork = fork_facts(config)
    learned_lakes = LakeRows()
    if config.algorithm.lakes is not None:
        schema = LakeSchema.of(seen, n_actions=len(game.action_names))
        learned_lakes = check_agreement(config.algorithm.lakes, schema, config, game)
    step = definition.step
    longest = config.env.most_episode_timesteps or assumed
    usual = min(longest, assumed) if probe is None else round(probe.median)
    placement = find_placement(
        device=config.device, precision=config.algorithm.precision, hardware=machine.hardware
    )
    return RunFacts(
        crop=definition.observation.crop,
        n_actions=len(game.action_names),
        four_shades=not game.is_colour,
        part_formats=definition.part_formats(),
        has_waits=step is not None,
        longest_wait_frames=0 if step is None else step.at_most_frames,
        has_places=definition.place is not None,
        n_potentials=sum(term.is_potential for term in game.rewards_of(config.env).values()),
        n_novelty_terms=sum(bool(term.per_run) for term in definition.rewards.values()),
        missing_explorations=missing_explorations(config, game),
        rom_bytes=len(game.rom.data),
        # of a reward term: what it earns, and how much of it in a loop
        n_game_curves=len(game.number_names)
        + 2 * len(game.rewards_of(config.env))
        + len(definition.endings),
        cpus=machine.cpus,
        uses_gpu=placement.is_on_gpu,
        uses_bf16=placement.precision == "bf16",
        episode_timesteps=usual,
        cache_bytes=machine.cache_bytes,
        bf16_way=machine.bf16_way,
        import_bytes=machine.imports.bytes,
        lake_bytes_per_timestep=None if lake is None else lake.bytes_per_timestep,
        fork=fork,
        learned_lakes=learned_lakes,
        played=played_size(config, game),
        game_changes=game_changes(game, config.env),
    )


def missing_explorations(config: RunConfig, game: Game) -> dict[str, Path]:
    """Return the explorations that a run begins with and that are not there, by config key.

    A run that has begun keeps what it needs of them, and a fork may have its parent's potentials.
    """
    if RunDir(config.run_dir).has_checkpoints():
        return {}
    named: dict[str, Path] = {}
    pool = config.env.pool
    if pool is not None and pool.from_ is not None:
        root, _ = run_at(pool.from_)
        if not recorded_files(root):
            named["env.pool.from"] = root
    if config.fork is None:
        for name, term in game.rewards_of(config.env).items():
            if term.potential is not None:
                key = f"env.rewards.{name}.potential" if name in config.env.rewards else "game"
                named[key] = explored_folder(term.potential, game)
    return {key: folder for key, folder in named.items() if not folder.exists()}


def _n_workers(config: RunConfig, cpus: int) -> int:
    """Return the number of workers of the training and of evaluations."""
    given = config.env.n_workers
    evaluated = config.evaluation.envs_for(config.evaluation.episodes)
    return training_workers(given, n_envs=config.env.n_envs, cpus=cpus) + evaluation_workers(
        given, n_envs=evaluated, cpus=cpus
    )


def _check_grids(seen: ObservationFormat) -> None:
    """Refuse stacked grids that SB3 would take for pictures whose channels come last."""
    for name, part in seen.parts:
        if part.kind != "grid" or part.n_values != _VALUES_OF_A_PIXEL:
            continue
        grids, height, width = part.stacked_shape(seen.stack)
        if grids > min(height, width):
            raise ConfigError(
                f"part {name} is {grids} grids of {width}x{height} with {part.n_values} values: "
                "SB3 would mistake a side of it for the channels of a picture; lower "
                "env.frame_stack, or do not stack the part"
            )


_COPIES = (
    *("events.jsonl", "eval.csv", "evaluations.npz"),
    *("monitor.csv", "progress.csv", "wandb.jsonl"),
)


def fork_facts(config: RunConfig) -> ForkFacts | None:
    """Return the facts of the fork that `config` describes; None if it describes no fork.

    A fork that exists does not need its parent, which may have deleted the checkpoint or be gone.

    Raises:
        UsageError: the fork does not exist yet, and its parent has no such checkpoint.
    """
    if config.fork is None:
        return None
    root, timesteps = run_at(config.fork.run)
    parent = RunDir(root)
    counts_anew = config.fork.counters == "new"
    saved = parent.checkpoints_newest_first()
    found = [path for path in saved if timesteps in (None, int(path.name))]
    if not found and RunDir(config.run_dir).exists():
        began_at = 0 if counts_anew else timesteps or 0
        return ForkFacts(began_at=began_at, copied_bytes=0, shared_bytes=0, is_linked=True)
    if not found:
        raise UsageError(
            f"{run_name(root)} keeps no checkpoint to fork"
            + ("" if timesteps is None else f" at timestep {timesteps:,}")
            + f"; it has: {', '.join(f'{int(path.name):,}' for path in saved) or 'none'}"
            + _still_offline(parent)
        )
    copies = [*(root / name for name in _COPIES), *parent.tensorboard.glob("*")]
    return ForkFacts(
        began_at=0 if counts_anew else int(found[0].name),
        copied_bytes=0 if counts_anew else sum(map(_size, copies)),
        shared_bytes=sum(map(_size, found[0].iterdir())) + _lake_bytes(config, found[0]),
        is_linked=is_same_disk(root, nearest_folder(config.run_dir.absolute())),
    )


def _still_offline(parent: RunDir) -> str:
    if parent.checkpoints_newest_first() or not parent.offline.checkpoints_newest_first():
        return ""
    return (
        "; it is still learning before its first timestep: bring it to timestep 0 with game-rl "
        f"train --resume {quote(str(parent.root))} --until 0, then fork that"
    )


def _lake_bytes(config: RunConfig, checkpoint: Path) -> int:
    """Bytes of the segments that the rows of the fork's replay are in."""
    file = checkpoint / "lake.json"
    if config.lake is None or not file.is_file():
        return 0
    try:
        state = json.loads(file.read_bytes())
        mark = None if state.get("replay") is None else state["mark"]
    except (ValueError, KeyError, AttributeError, RecursionError) as error:
        raise CheckpointError(
            f"{file} is damaged ({error}); restore it from a copy, or fork another checkpoint"
        ) from None
    if mark is None:
        return 0
    return sum(segment.n_bytes for segment in Mark.from_json(mark, source=file).segments)


def _size(path: Path) -> int:
    return path.stat().st_size if path.is_file() else 0
