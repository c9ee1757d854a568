"""Checks of settings that do not do what they seem to, or that could be better."""

import math
from collections.abc import Callable
from shlex import quote

from game_rl.config.algorithms import ExplorationConfig, RestartConfig
from game_rl.config.schema import RunConfig
from game_rl.preflight import fixes
from game_rl.preflight.findings import Compared, absent
from game_rl.preflight.fixes import GREY, Fix, has_needless_colour
from game_rl.preflight.footprint import Situation
from game_rl.preflight.memory import gradient_step_bytes
from game_rl.statistics import percent
from game_rl.system.units import counted, format_bytes
from game_rl.vec_env.workers import training_workers

# A wait looks at the variables after each frame. A core of a shared machine played 9,000 to 10,000
# such frames of the bundled games in a second; a busy one has a third of it.
_FRAMES_A_SECOND_ONE_BY_ONE = 3_000

# Two frames show what moves; more of them show what a memory keeps.
_STACK_BESIDE_MEMORY = 2

_SHORTEST_ROLLOUT = 128  # n_steps below this make advantages noisy; SB3's Atari presets use it
_EPISODES_IN_A_ROLLOUT = 4
_LEAST_OWN_SHARE = 0.1
_MOST_RANDOM_AFTER_CLONE = 0.5


def few_own_rows(situation: Situation) -> Compared:
    """Warn of the tandem effect: 10 to 20 % of own play reduce it greatly, and 50 % remove it."""
    algorithm = situation.config.algorithm
    settings = algorithm.lakes
    if settings is None:
        return absent("the run does not learn from Lakes")
    if algorithm.teacher is not None:
        return absent("the run has a teacher")
    share = settings.most_own_share
    compared = Compared(
        f"{percent(share)} of own play in a batch against {percent(_LEAST_OWN_SHARE)}"
    )
    if share >= _LEAST_OWN_SHARE:
        return compared
    return compared.found(
        "warning",
        "few_own_rows",
        "algorithm.learn_from.own_share",
        f"at most {percent(share)} of each batch is the run's own play, and there is no teacher: a "
        "network that learns from others' play alone fails where they succeed, because nothing "
        "corrects its values of actions that the others do not take (the tandem effect, Ostrovski "
        "et al. 2021, arXiv 2110.14020; 10 to 20 % of own play reduce it greatly, and 50 % remove "
        "it)",
        Fix("algorithm.learn_from.own_share", "0.5"),
    )


def clone_is_not_played(situation: Situation) -> Compared:
    """Warn of a run that imitates a player and then begins with random actions all the same."""
    config = situation.config
    exploration = config.algorithm.exploration
    if config.clone is None:
        return absent("the run does not imitate a player before its first timestep")
    if exploration is None:
        return absent("the policy samples its own actions")
    start = exploration.start
    compared = Compared(
        f"{percent(start)} random actions at first, against {percent(_MOST_RANDOM_AFTER_CLONE)}"
    )
    if start <= _MOST_RANDOM_AFTER_CLONE:
        return compared
    return compared.found(
        "warning",
        "clone_is_not_played",
        "algorithm.exploration.start",
        f"the network imitates a player before the first timestep, but then {percent(start)} of "
        "its actions are random, so that the run plays as if it were untrained",
        Fix("algorithm.exploration.start", "0.1"),
    )


def n_steps_is_no_episode_length(situation: Situation) -> Compared:
    """Warn if a rollout of each env is much longer than an episode.

    n_steps says how often the network is updated. Episodes continue across rollouts.
    """
    config = situation.config
    probe = situation.probe
    n_steps = config.algorithm.n_steps
    if n_steps is None:
        return absent(f"{config.algorithm.name} has no rollouts")
    longest = config.env.most_episode_timesteps
    against = f"max_episode_timesteps, {longest or 0:,}"
    if probe is not None:
        reference = round(probe.median)
        bound = round(probe.median) * _EPISODES_IN_A_ROLLOUT
        lengths = probe.timesteps
        what = f"a random episode has {min(lengths):,} to {max(lengths):,} timesteps, half of "
        what += f"them at most {reference:,}"
        against = f"{_EPISODES_IN_A_ROLLOUT} random episodes of {reference:,}"
    elif longest is not None:
        reference = longest
        bound = longest - 1
        what = f"no episode is longer than max_episode_timesteps, {longest:,}"
    else:
        return Compared(f"n_steps, {n_steps:,}, against {against}")
    compared = Compared(f"n_steps, {n_steps:,}, against {against}")
    fix = _shorter_rollout(config, reference)
    if n_steps <= bound or fix is None:
        return compared
    return compared.found(
        "warning",
        "n_steps_is_no_episode_length",
        "algorithm.n_steps",
        f"n_steps is {n_steps:,}, and {what}; n_steps is the number of timesteps that each env "
        "plays between two updates, across episodes: with a smaller one the network learns more "
        "often and needs less memory",
        fix,
    )


def colour_of_four_shades(situation: Situation) -> Compared:
    config = situation.config
    facts = situation.facts
    grey = fixes.apply_fix(config, GREY)
    shades = "four shades of grey" if facts.four_shades else "colours"
    compared = Compared(
        f"env.observation.colour is {config.env.observation.colour}, and the game has {shades}"
    )
    if not has_needless_colour(situation) or grey is None:
        return compared
    step, grey_step = (gradient_step_bytes(changed, facts) for changed in (config, grey))
    memory = f"{format_bytes(step)} where grey takes {format_bytes(grey_step)}, and "
    if grey_step > step:  # grey pictures go through the network in larger parts
        memory = ""
    return compared.found(
        "warning",
        "colour_of_four_shades",
        "env.observation.colour",
        "the game has four shades of grey, so red, green and blue are the same frame, which the "
        f"network reads three times: a gradient step takes {memory}more time",
        GREY,
    )


def restart_without_effect(situation: Situation) -> Compared:
    """Report the first restart with a fault; fixing it may change the faults of later ones."""
    config = situation.config
    exploration = config.algorithm.exploration
    if exploration is None or not exploration.restarts:
        return absent("exploration does not restart")
    compared = Compared(
        f"{counted(len(exploration.restarts), 'restart')} against the usual exploration rate "
        "there, the length of a rollout and the run's end"
    )
    for index, restart in enumerate(exploration.restarts):
        if (fault := _fault(config, exploration, restart)) is not None:
            key = f"algorithm.exploration.restarts.{index}"
            return compared.found("warning", "restart_without_effect", key, fault)
    return compared


def own_parts_not_counted(situation: Situation) -> Compared:
    """List the custom parts, whose memory and time nobody knows before they run."""
    parts = situation.config.custom_parts
    if not parts:
        return absent("callbacks and env.wrappers are empty, and algorithm.network is not a class")
    names = ", ".join(f"{part.reference} ({'.'.join(part.key)})" for part in parts)
    return Compared(
        f"{counted(len(parts), 'part')} in callbacks, env.wrappers and algorithm.network"
    ).found(
        "info",
        "own_parts_not_counted",
        parts[0].key[0],
        f"{names}: the memory and time of Python of your own are not part of this forecast; "
        "--probe measures with wrappers, but without callbacks",
    )


def game_is_changed(situation: Situation) -> Compared:
    """Say which variables the start states set: the agent does not learn the game as it is."""
    changes = situation.facts.game_changes
    if not changes:
        return absent("start states neither write nor hold values")
    return Compared(f"{counted(len(changes), 'start state')} with write or hold_values").found(
        "info",
        "game_is_changed",
        "env.start_states",
        f"the game is modified, and results are those of the modified game: {'; '.join(changes)} "
        "(write and hold_values in game.yaml)",
    )


def step_may_outlast_workers(situation: Situation) -> Compared:
    """Warn of a `step` in game.yaml with which a worker may take longer than it has."""
    env = situation.config.env
    frames = situation.facts.longest_wait_frames
    if not frames:
        return absent("no timestep waits for `step.until`")
    workers = training_workers(env.n_workers, n_envs=env.n_envs, cpus=situation.facts.cpus)
    envs = -(-env.n_envs // workers)
    seconds = envs * frames / _FRAMES_A_SECOND_ONE_BY_ONE
    compared = Compared(
        f"{frames:,} frames in each of {envs} envs of a worker, about {seconds:,.0f} s, against "
        f"{env.worker_timeout_s:g} s of env.worker_timeout_s"
    )
    if seconds <= env.worker_timeout_s:
        return compared
    return compared.found(
        "warning",
        "step_may_outlast_workers",
        "env.worker_timeout_s",
        "if `step.until` of the game does not hold, a timestep takes up to `step.at_most_frames`, "
        f"{frames:,} frames, in each of the {envs} envs of a worker: about {seconds:,.0f} s, and a "
        f"worker that takes longer than {env.worker_timeout_s:g} s ends the run; a lower "
        "step.at_most_frames in game.yaml helps as well",
        Fix("env.worker_timeout_s", math.ceil(2 * seconds)),
    )


def observation_has_parts(situation: Situation) -> Compared:
    """Say how many bytes each part of an observation takes."""
    form = situation.facts.observation_format(situation.config)
    if not form.is_dict:
        return absent("an observation consists of the screens only")
    sizes = sorted(form.part_bytes.items(), key=lambda item: (-item[1], item[0]))
    parts = ", ".join(f"{name} {size:,}" for name, size in sizes)
    text = f"a timestep is stored in {form.row_bytes:,} bytes: {parts}"
    compared = Compared(
        f"bytes of each part of a timestep as stored: {parts}; an observation is "
        f"{form.nbytes:,} bytes as the network gets it"
    )
    return compared.found("info", "observation_has_parts", "env.observation", text)


def stack_beside_memory(situation: Situation) -> Compared:
    """Say that an agent with a memory needs no stack of screens or parts."""
    config = situation.config
    stack = config.env.frame_stack
    seen = situation.facts.observation_format(config)
    stacked = [name for name, part in seen.parts if part.is_stacked]
    if config.algorithm.memory is None:
        return absent("the agent has no memory")
    if seen.screen is None and not stacked:
        return absent("the agent sees nothing that is stacked")
    compared = Compared(f"frame_stack {stack} against {_STACK_BESIDE_MEMORY} with a memory")
    if stack <= _STACK_BESIDE_MEMORY:
        return compared
    what = f"{stack} screens"
    if seen.screen is None:
        what = f"{' and '.join(stacked)} of {stack} timesteps"
    return compared.found(
        "info",
        "stack_beside_memory",
        "env.frame_stack",
        f"the agent sees {what} at once, and has a memory of those before; with frame_stack: 1 "
        "the memory does both, and the network reads less",
        Fix("env.frame_stack", 1),
    )


def exploration_missing(situation: Situation) -> Compared:
    """Report an exploration that the run begins with and that is not there."""
    config = situation.config
    if config.env.pool is None and not situation.facts.n_potentials:
        return absent("no pool and no potential of a reward names an exploration")
    missing = situation.facts.missing_explorations
    if not missing:
        return Compared("the explorations that env.pool.from and potentials of rewards name exist")
    key, folder = next(iter(missing.items()))
    command = f"game-rl explore {quote(config.game)} --output {quote(str(folder))}"
    compared = Compared(f"{', '.join(missing)} against the folders that exist")
    message = f"there is no folder {folder}; make it first with {command}, or correct the path"
    return compared.found("error", "exploration_missing", key, message)


def _shorter_rollout(config: RunConfig, episode_timesteps: int) -> Fix | None:
    """Return a smaller n_steps, about one episode of each env, with whole batches in a rollout."""
    present = config.algorithm.n_steps
    assert present is not None
    unit = fixes.n_steps_unit(config)
    target = max(_SHORTEST_ROLLOUT, 2 ** (max(1, episode_timesteps).bit_length() - 1))
    for n_steps in (target // unit * unit, -(-target // unit) * unit):
        fix = Fix("algorithm.n_steps", n_steps)
        if 0 < n_steps < present and fixes.apply_fix(config, fix) is not None:
            return fix
    return None


def _fault(config: RunConfig, exploration: ExplorationConfig, restart: RestartConfig) -> str | None:
    algorithm = config.algorithm
    total = config.total_timesteps
    at = restart.at
    back = restart.at + restart.over
    main_line = exploration.model_copy(update={"restarts": ()})
    usual = main_line.schedule(timesteps=total).at(at)
    if restart.start <= usual:
        return (
            f"it starts at {restart.start:g}, but the usual exploration rate is {usual:.3g} at "
            f"timestep {at:,}, and the rate never falls below that: use a larger start, or a "
            "later at"
        )
    if at < algorithm.learning_starts:
        return (
            f"it starts at timestep {at:,}, but every action is random before learning_starts, "
            f"{algorithm.learning_starts:,}: use a later at"
        )
    if restart.over < config.rollout_timesteps and algorithm.replay is None:
        return (
            f"it lasts {restart.over:,} timesteps, less than one rollout of "
            f"{config.rollout_timesteps:,}, in which the rate stays the same: use a larger over"
        )
    if back > total:
        return (
            f"it lasts until timestep {back:,}, but the run ends at {total:,}, with its "
            "exploration rate still raised: use an earlier at, or a smaller over"
        )
    return None


SETTING_CHECKS: tuple[Callable[[Situation], Compared], ...] = (
    few_own_rows,
    clone_is_not_played,
    n_steps_is_no_episode_length,
    colour_of_four_shades,
    restart_without_effect,
    own_parts_not_counted,
    game_is_changed,
    step_may_outlast_workers,
    observation_has_parts,
    stack_beside_memory,
    exploration_missing,
)
