"""What is wrong with where an env's episodes begin, and with its rewards, found out by playing."""

from collections.abc import Sequence

from game_rl.envs.custom_wrappers import GameEnv
from game_rl.envs.episode_ends import EpisodeConditions
from game_rl.envs.episode_reward import EpisodeReward
from game_rl.envs.game_boy_env import GameBoyEnv
from game_rl.envs.make_env import innermost
from game_rl.game_check.episode_courses import StartCourses, StartVariety

_TRIED_TIMESTEPS = 8
_MOST_LOOKED_AT = 8  # start states at the beginning of a training; each takes some 50 ms


def start_warnings(env: GameEnv) -> list[str]:
    """Say quickly what is wrong with where episodes begin; the next call must be `reset`.

    Every episode may be the same, for instance, or already over. Also warns of wrappers that load
    torch, for which each worker pays.
    """
    game_env = innermost(env)
    names = game_env.starts.names
    found = [start_fault(game_env, name) for name in names[:_MOST_LOOKED_AT]]
    _, warnings = check_starts(game_env, names[:1], is_thorough=False)
    if env.has_loaded_torch:
        warnings.append(
            "a module of env.wrappers loads torch, which takes about 200 MB in each worker: "
            "keep wrappers in a module that imports neither torch nor stable_baselines3"
        )
    return [*filter(None, found), *warnings]


def check_starts(
    env: GameBoyEnv, names: Sequence[str], *, is_thorough: bool = True
) -> tuple[list[StartCourses], list[str]]:
    """Return how episodes from these start states vary, and warnings; then call `reset`."""
    variety = StartVariety(env, is_thorough=is_thorough)
    unkept = [text for name in names for text in env.starts.unkept(name)]
    courses = [variety.count(name) for name in names]
    return courses, [*unkept, *variety.warnings(courses)]


def start_fault(env: GameBoyEnv, name: str) -> str | None:
    """Say if an episode is over or won in this start state; the next call must be `reset`."""
    env.starts.bring(name, game_seed=0, idle_frames=0)
    conditions = env.tracker(EpisodeConditions)
    held = "" if conditions is None else conditions.held_at_start(env.read_variables())
    if held in env.game.definition.endings:
        return (
            f"start_states.{name}: the ending {held} holds already, so each episode from there "
            "is over in its first timestep, whatever the agent does; let it begin earlier, or "
            f"correct endings.{held}"
        )
    if held:
        return (
            f"start_states.{name}: success holds already, so episodes from there count as won, "
            "whatever the agent does; let it begin earlier, or correct `success`"
        )
    return None


def try_reward(env: GameEnv) -> None:
    """Check the game's own reward class after a few timesteps; the next call must be `reset`.

    Raises:
        GameFileError: it fails, or what it holds then cannot be saved or loaded.
    """
    game_env = innermost(env)
    reward = game_env.tracker(EpisodeReward)
    if game_env.game.definition.reward is None or reward is None:
        return
    game_env.reset(seed=0)
    for number in range(_TRIED_TIMESTEPS):
        if game_env.episode.running:
            game_env.step(number % game_env.player.n_actions)
            if game_env.episode.running:
                reward.check_parts(game_env.read_variables())
                reward.renew_custom()
    game_env.episode.running = False


def check_reward(env: GameEnv) -> str | None:
    """Return a warning about the rewards so far, or about a wrapper that cannot be saved.

    The env goes on with a saved and loaded copy of the game's own reward class, as a resumed run
    does, so that what cannot be saved is found now.

    Raises:
        GameFileError: the class cannot be saved or loaded.
    """
    reward = env.tracker(EpisodeReward)
    assert reward is not None
    if innermost(env).episode.running:
        reward.renew_custom()
    unsaved = env.unsaved_wrapper()
    warning = reward.largest.warning
    if warning is not None or unsaved is None:
        return warning
    return (
        f"{unsaved}, changes its attributes and has no state_dict and load_state_dict: "
        "the episodes start again at a resume, and the wrapper with them"
    )
