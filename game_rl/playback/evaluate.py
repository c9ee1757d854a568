"""Playing a trained run's episodes: how good is it?"""

from contextlib import closing

from game_rl.callbacks.evaluate import Evaluation, evaluate
from game_rl.callbacks.stop import StopRequest
from game_rl.playback.policy import TrainedRun
from game_rl.seeds import seed_for
from game_rl.vec_env.make_vec_env import make_vec_env


def evaluate_run(
    run: TrainedRun, *, episodes: int, seed: int | None = None, stop: StopRequest | None = None
) -> Evaluation:
    """Play episodes with a run's checkpoint.

    Args:
        seed: chooses the episodes; None: those of the run's final evaluation, which selected
            nothing.
        stop: breaks the evaluation off when it is asked for.

    Raises:
        EvaluationInterrupted: it was.
    """
    config = run.config
    if seed is None:
        seed = seed_for(config.seed, "final_evaluation")
    n_envs = config.evaluation.envs_for(episodes)
    with closing(make_vec_env(config.env, run.game, n_envs=n_envs, seed=seed)) as vec_env:
        policy = run.policy(vec_env.observation_space, vec_env.action_space)
        return evaluate(
            policy,
            vec_env,
            episodes=episodes,
            deterministic=run.deterministic,
            seed=seed,
            stop=stop,
        )
