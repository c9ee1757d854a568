"""Findings about a run that fits: settings that look unintended or could be better."""

from game_rl.config.algorithms import DQNConfig
from game_rl.config.schema import RunConfig
from game_rl.preflight import changes, verdict
from game_rl.preflight.changes import Fix
from game_rl.preflight.findings import Finding
from game_rl.preflight.gpus import replay_gpu
from game_rl.preflight.memory import filled_capacity, gradient_step_bytes, storage
from game_rl.preflight.remedies import GREY, has_needless_colour
from game_rl.preflight.situation import Situation
from game_rl.system.units import format_bytes
from game_rl.vec_env.workers import training_workers

_SHORTEST_ROLLOUT = 128  # n_steps below this make advantages noisy; SB3's Atari presets use it
_EPISODES_IN_A_ROLLOUT = 4


def machine_under_used(situation: Situation) -> Finding | None:
    config, machine = situation.config, situation.machine
    n_envs, cpus = config.env.n_envs, situation.facts.cpus
    busy = training_workers(config.env.n_workers, n_envs=n_envs, cpus=cpus)
    if busy >= machine.cpus or verdict.verdict(situation.footprint, machine) != "fits":
        return None
    if busy < config.env.n_envs:
        fix: Fix | None = Fix("env.n_workers", min(machine.cpus, config.env.n_envs))
    else:
        fix = changes.first_fix(
            config,
            (Fix("env.n_envs", n) for n in changes.larger_n_envs(config, machine.cpus)),
            lambda changed: verdict.verdict(situation.footprint_of(changed), machine) == "fits",
        )
    if fix is None:
        return None
    return Finding(
        "info",
        "machine_under_used",
        fix.key,
        f"{config.env.n_envs} envs keep {busy} of {machine.cpus} CPUs busy; {fix.value} "
        f"{'workers' if fix.key == 'env.n_workers' else 'envs'} fit{_rollout_note(config, fix)}",
        fix,
    )


def n_steps_is_no_episode_length(situation: Situation) -> Finding | None:
    """Warn if a rollout of each env is much longer than an episode.

    n_steps says how often the network is updated. Episodes continue across rollouts.
    """
    config, probe = situation.config, situation.probe
    if isinstance(config.algorithm, DQNConfig):
        return None
    n_steps, longest = config.algorithm.n_steps, config.env.max_episode_timesteps
    if probe is not None:
        reference, bound = round(probe.median), round(probe.median) * _EPISODES_IN_A_ROLLOUT
        what = f"a random episode has {probe.shortest:,} to {probe.longest:,} timesteps, half of "
        what += f"them at most {reference:,}"
    elif longest is not None:
        reference, bound = longest, longest - 1
        what = f"no episode is longer than max_episode_timesteps, {longest:,}"
    else:
        return None
    fix = _shorter_rollout(config, reference)
    if n_steps <= bound or fix is None:
        return None
    return Finding(
        "warning",
        "n_steps_is_no_episode_length",
        "algorithm.n_steps",
        f"n_steps is {n_steps:,}, and {what}; n_steps is the number of timesteps that each env "
        "plays between two updates, across episodes: with a smaller one the network learns more "
        "often and needs less memory",
        fix,
    )


def colour_of_four_shades(situation: Situation) -> Finding | None:
    config, facts = situation.config, situation.facts
    grey = changes.apply_fix(config, GREY)
    if not has_needless_colour(situation) or grey is None:
        return None
    step, grey_step = (gradient_step_bytes(changed, facts) for changed in (config, grey))
    memory = f"{format_bytes(step)} where grey takes {format_bytes(grey_step)}, and "
    if grey_step > step:  # grey pictures go through the network in larger parts
        memory = ""
    return Finding(
        "warning",
        "colour_of_four_shades",
        "env.observation.colour",
        "the game has four shades of grey, so red, green and blue are one picture that the network "
        f"reads three times: a gradient step takes {memory}more time",
        GREY,
    )


def replay_is_never_full(situation: Situation) -> Finding | None:
    config, facts = situation.config, situation.facts
    if not isinstance(config.algorithm, DQNConfig):
        return None
    capacity, timesteps = (
        config.algorithm.replay.capacity,
        situation.footprint.training.final_timesteps,
    )
    enough = _rounded_up(filled_capacity(config, facts))
    if capacity <= max(enough, timesteps):
        return None
    fix = Fix("algorithm.replay.capacity", enough)
    smaller = changes.apply_fix(config, fix)
    note = ""
    if smaller is not None and replay_gpu(config) is not None:
        saved = storage(config, facts).bytes - storage(smaller, facts).bytes
        note = f", and leave {format_bytes(saved)} more of GPU memory free"
    return Finding(
        "info",
        "replay_is_never_full",
        "algorithm.replay.capacity",
        f"the replay has room for {capacity:,} timesteps, and the run plays {timesteps:,}; "
        f"{enough:,} hold them all, with the last frames of their episodes{note}",
        fix if smaller is not None else None,
    )


def _rounded_up(number: int) -> int:
    """Round up to two significant digits."""
    unit: int = 10 ** max(0, len(str(number)) - 2)
    return -(-number // unit) * unit


def _shorter_rollout(config: RunConfig, episode_timesteps: int) -> Fix | None:
    """Return a smaller n_steps, about one episode of each env, with whole batches in a rollout."""
    assert not isinstance(config.algorithm, DQNConfig)
    unit = changes.n_steps_unit(config)
    target = max(_SHORTEST_ROLLOUT, 2 ** (max(1, episode_timesteps).bit_length() - 1))
    for n_steps in (target // unit * unit, -(-target // unit) * unit):
        fix = Fix("algorithm.n_steps", n_steps)
        if 0 < n_steps < config.algorithm.n_steps and changes.apply_fix(config, fix) is not None:
            return fix
    return None


def _rollout_note(config: RunConfig, fix: Fix) -> str:
    """Name the n_steps that keeps the rollout's length: more envs at the same n_steps raise it."""
    changed = changes.apply_fix(config, fix) if fix.key == "env.n_envs" else None
    if changed is None or isinstance(config.algorithm, DQNConfig):
        return ""
    unit = changes.n_steps_unit(changed)
    n_steps = config.rollout_timesteps // changed.env.n_envs // unit * unit
    if n_steps == 0:
        return ""
    return (
        f" (with algorithm.n_steps={n_steps} as well, a rollout has "
        f"{n_steps * changed.env.n_envs:,} timesteps instead of {changed.rollout_timesteps:,})"
    )
