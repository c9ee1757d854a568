"""Changes of a config that make it fit, in the order in which they are tried for each resource."""

from collections.abc import Callable, Sequence

from game_rl.config.algorithms import DQNConfig
from game_rl.config.schema import RunConfig
from game_rl.preflight import changes, verdict
from game_rl.preflight.changes import Fix
from game_rl.preflight.footprint import Footprint
from game_rl.preflight.gpus import network_gpu, replay_gpu
from game_rl.preflight.memory import together
from game_rl.preflight.situation import Situation
from game_rl.system.machine import Machine

Judge = Callable[[Footprint, Machine], verdict.Verdict]
Change = tuple[str, Sequence[int | str]]
"""A key and values to try for it; the smallest change comes first."""

GREY = Fix("env.observation.colour", "grey")


def cheapest_fix(situation: Situation, judge: Judge, candidates: list[Change]) -> Fix | None:
    """Return the first change after which the verdict is "fits".

    If there is none and the run does not fit at present, the first with the verdict "tight" is
    returned, or None.
    """
    present = judge(situation.footprint, situation.machine)
    wanted: list[set[verdict.Verdict]] = [{"fits"}]
    if present == "does_not_fit":
        wanted.append({"fits", "tight"})
    for good in wanted:

        def holds(changed: RunConfig, good: set[verdict.Verdict] = good) -> bool:
            return judge(situation.footprint_of(changed), situation.machine) in good

        for key, values in candidates:
            fix = changes.smallest_fix(situation.config, key, values, holds)
            if fix is not None:
                return fix
    return None


def _micro_batch_change(situation: Situation) -> Change:
    """Return smaller micro-batches, which come first because they do not change the learning.

    `auto` comes first if it is smaller than the present size, then sizes below `auto`.
    """
    key, config, facts = "algorithm.micro_batch_size", situation.config, situation.facts
    now = together(config, facts)
    automatic = changes.apply_fix(config, Fix(key, "auto"))
    least = now if automatic is None else min(now, together(automatic, facts))
    sizes = changes.smaller_micro_batch_sizes(config, least)
    return (key, ["auto", *sizes] if least < now else sizes)


def storage_key(config: RunConfig) -> str:
    is_replay = isinstance(config.algorithm, DQNConfig)
    return "algorithm.replay.capacity" if is_replay else "algorithm.n_steps"


def _storage_change(config: RunConfig) -> Change:
    is_replay = isinstance(config.algorithm, DQNConfig)
    smaller = changes.smaller_capacities if is_replay else changes.smaller_n_steps
    return storage_key(config), smaller(config)


def has_needless_colour(situation: Situation) -> bool:
    """Whether grey pictures would show all that the game shows, and are valid for the network."""
    config = situation.config
    is_coloured = config.env.observation.colour != "grey" and situation.facts.four_shades
    return is_coloured and changes.apply_fix(config, GREY) is not None


def _colour_change(situation: Situation) -> list[Change]:
    """Return the change to grey; it loses nothing, so it comes before changes of the learning."""
    return [(GREY.key, [GREY.value])] if has_needless_colour(situation) else []


def _size_change(situation: Situation) -> list[Change]:
    """Return the change to half size, which comes last: small things on the screen may be lost."""
    crop, size = situation.facts.crop, situation.config.env.observation.size
    halves = size == "full" and crop.height % 2 == crop.width % 2 == 0
    return [("env.observation.size", ["half"])] if halves else []


def ram_changes(situation: Situation) -> list[Change]:
    config = situation.config
    batch: Change = ("algorithm.batch_size", changes.smaller_batch_sizes(config))
    rollout = _storage_change(config)
    is_update = situation.footprint.ram.peak.name == "update"
    return [
        *([_micro_batch_change(situation)] if is_update else []),
        *_colour_change(situation),
        *([batch, rollout] if is_update else [rollout, batch]),
        ("env.n_envs", changes.smaller_n_envs(config)),
        *_size_change(situation),
    ]


def vram_changes(situation: Situation) -> list[Change]:
    """Return changes that free memory of the network's GPU, where the replay may be, too."""
    config = situation.config
    batch: Change = ("algorithm.batch_size", changes.smaller_batch_sizes(config))
    is_shared = replay_gpu(config) == network_gpu(config, situation.facts)
    return [
        _micro_batch_change(situation),
        *_colour_change(situation),
        *(replay_vram_changes(situation) if is_shared else []),
        batch,
        *_size_change(situation),
    ]


def replay_vram_changes(situation: Situation) -> list[Change]:
    """Return changes that free memory of the replay's GPU."""
    return [("algorithm.replay.device", ["cpu"]), _storage_change(situation.config)]


def disk_changes(situation: Situation) -> list[Change]:
    keep_last, episodes = (
        situation.config.checkpoints.keep_last,
        situation.config.recording.episodes,
    )
    return [
        ("checkpoints.keep_last", range(keep_last - 1, 0, -1)),
        ("recording.episodes", range(episodes - 1, -1, -1)),
        *_size_change(situation),
    ]
