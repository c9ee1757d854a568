"""A run's trained policy: its checkpoint chosen, opened and evaluated."""

from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from gymnasium import spaces
from numpy.typing import NDArray
from stable_baselines3.common.policies import BasePolicy
from stable_baselines3.common.vec_env import VecEnv

from game_rl.algorithms.make_algorithm import make_policy
from game_rl.algorithms.policies import policy_outputs
from game_rl.algorithms.reward_scaling import REWARD_STATE, make_reward_scaling, take_reward_state
from game_rl.buffers.unpacking import observation_tensors
from game_rl.callbacks.baselines import Baseline, play_baseline
from game_rl.callbacks.evaluation import Evaluation, Values, evaluate
from game_rl.checkpoints.checkpoint import Checkpoint
from game_rl.checkpoints.checkpoint_files import FileName
from game_rl.checkpoints.checkpoint_folder import best_checkpoint, best_of
from game_rl.checkpoints.checkpoint_state import Best, CheckpointState
from game_rl.checkpoints.checkpoint_store import kept_checkpoint, newest_valid_checkpoint
from game_rl.checkpoints.model_state import load_module_tensors
from game_rl.checkpoints.named import find_run, open_run, timesteps_named
from game_rl.checkpoints.run_game import game_notes, open_game
from game_rl.config.schema import RunConfig
from game_rl.envs.episode_tracker import TrackerMaker
from game_rl.envs.observation import Observation
from game_rl.errors import CheckpointError, NoCheckpointError
from game_rl.files.run_dir import RunDir
from game_rl.games.definition import Game
from game_rl.playback.checkpoint_survey import is_teacher_best
from game_rl.playback.teacher_copy import read_teacher
from game_rl.seeds import seed_for
from game_rl.system.stop_request import StopRequest
from game_rl.system.units import with_frames
from game_rl.vec_env.make_vec_env import make_vec_env


@dataclass(frozen=True)
class TrainedRun:
    """A checkpoint of a run, with everything that is needed to let it play.

    Attributes:
        deterministic: whether it takes its most probable actions or samples them.
        is_teacher: whether the policy is that of the run's teacher.
    """

    run_dir: RunDir
    config: RunConfig
    game: Game
    checkpoint: Checkpoint
    deterministic: bool
    is_teacher: bool = False

    @property
    def name(self) -> str:
        """Name of the policy, for people."""
        state = self.state
        learned = with_frames(state.num_timesteps, self.config.env.frame_skip, state.waited_frames)
        timestep = f"timestep {learned}"
        return f"its teacher, {timestep}" if self.is_teacher else timestep

    def policy_facts(self) -> dict[str, object]:
        """Return when the policy was learned, as JSON values."""
        timesteps = self.state.num_timesteps
        return {
            "policy_timesteps": timesteps,
            "policy_frames": timesteps * self.config.env.frame_skip + self.state.waited_frames,
        }

    def game_notes(self, given: str | None = None) -> list[str]:
        """Return what has changed of its game since the training; see `run_game.game_notes`."""
        return game_notes(self.run_dir, self.config, self.state, self.game, given)

    @property
    def state(self) -> CheckpointState:
        return self.checkpoint.state

    def policy(
        self, observation_space: spaces.Space[object], action_space: spaces.Space[object]
    ) -> BasePolicy:
        """Build the checkpoint's network, on the CPU."""
        policy = make_policy(self.config.algorithm, observation_space, action_space)
        load_module_tensors(policy, self.checkpoint.policy(), str(self.checkpoint.path))
        return policy


def open_trained_run(root: Path, checkpoint: str, game: str | None = None) -> TrainedRun:
    """Open the checkpoint `best`, `latest` or a number of timesteps of the run at `root`.

    The best acts as in the evaluation that chose it, and other checkpoints as the config says.
    `auto` there means to act as the best, or with the most probable actions if there is no best
    yet. The best is the run's teacher if a validation found it to be at least as good.

    Args:
        game: another game file, or None for the run's own.
    """
    run_dir = find_run(root)
    if checkpoint == "best" and run_dir.validation.exists():
        newest, _ = newest_valid_checkpoint(run_dir)
        if is_teacher_best(run_dir, newest):
            return open_teacher(root, game)
    return open_own_run(root, checkpoint, game)


def open_own_run(root: Path, checkpoint: str, game: str | None = None) -> TrainedRun:
    """As `open_trained_run`, but the best is always a policy that the run has learned itself."""
    run_dir, config = open_run(root)
    played = open_game(run_dir, config, game)
    found, best = _find_checkpoint(run_dir, checkpoint)
    found.check_game(played)
    chosen = config.evaluation.deterministic
    deterministic = chosen is not False
    if best is not None and (best.timesteps == found.state.num_timesteps or chosen == "auto"):
        deterministic = best.deterministic
    return TrainedRun(run_dir, config, played, found, deterministic)


def open_teacher(root: Path, game: str | None = None) -> TrainedRun:
    """Open the teacher of the run at `root`, to play the games of that run."""
    run_dir, config = open_run(root)
    _, copy = read_teacher(run_dir)
    checkpoint = Checkpoint(copy.path)
    played = open_game(run_dir, config, game)
    checkpoint.check_game(played)
    config = config.model_copy(update={"algorithm": checkpoint.config.algorithm})
    return TrainedRun(run_dir, config, played, checkpoint, deterministic=True, is_teacher=True)


def _find_checkpoint(run_dir: RunDir, name: str) -> tuple[Checkpoint, Best | None]:
    """Return the checkpoint, and the run's best evaluation, if any."""
    timesteps = timesteps_named(name)
    newest, _ = newest_valid_checkpoint(run_dir)
    best = best_of(run_dir, newest)
    if name == "latest":
        return newest, best
    if timesteps is None:
        if best is None:
            raise NoCheckpointError(
                f"{run_dir.root} has no best checkpoint yet, because no evaluation has finished; "
                "use --checkpoint latest"
            )
        path = best_checkpoint(run_dir, best)
        if not path.exists():
            raise CheckpointError(
                f"the best checkpoint of {run_dir.root}, {path.relative_to(run_dir.root)}, is "
                "gone; use --checkpoint latest"
            )
        return Checkpoint(path).verify(), best
    return kept_checkpoint(run_dir, timesteps), best


def evaluate_run(
    run: TrainedRun,
    *,
    episodes: int,
    seed: int | None = None,
    start_state: str | None = None,
    stop: StopRequest | None = None,
    trackers: Sequence[TrackerMaker] = (),
) -> Evaluation:
    """Play episodes with a run's checkpoint.

    Args:
        seed: chooses the episodes. None plays those of the run's final evaluation, which selected
            nothing.
        start_state: start state of all episodes, trained on or not, or None for those of the
            config.
        stop: request that interrupts the evaluation.
        trackers: what else follows the episodes.

    Raises:
        EvaluationInterrupted: a stop was requested.
        UsageError: the game has no such start state.
    """
    with closing(_envs(run.config, run.game, episodes, seed, start_state, trackers)) as vec_env:
        policy = run.policy(vec_env.observation_space, vec_env.action_space)
        return evaluate(
            policy,
            vec_env,
            episodes=episodes,
            deterministic=run.deterministic,
            seed=_episodes_seed(run.config, seed),
            stop=stop,
            values=_values(policy, run),
        )


def evaluate_baseline(
    config: RunConfig,
    game: Game,
    name: str,
    *,
    episodes: int,
    seed: int | None = None,
    start_state: str | None = None,
) -> Baseline:
    """Play the episodes of `evaluate_run` with a policy that has learned nothing.

    Args:
        name: `random`, `constant:ACTION` or `best-constant`.

    Raises:
        UsageError: the game has no such action or start state.
    """
    with closing(_envs(config, game, episodes, seed, start_state)) as vec_env:
        chosen = _episodes_seed(config, seed)
        return play_baseline(name, vec_env, game.action_names, episodes=episodes, seed=chosen)


def _envs(
    config: RunConfig,
    game: Game,
    episodes: int,
    seed: int | None,
    start_state: str | None,
    trackers: Sequence[TrackerMaker] = (),
) -> VecEnv:
    env_config = config.env.starting_in(None if start_state is None else [start_state])
    n_envs = config.evaluation.envs_for(episodes)
    chosen = _episodes_seed(config, seed)
    return make_vec_env(env_config, game, n_envs=n_envs, seed=chosen, trackers=trackers)


def _episodes_seed(config: RunConfig, seed: int | None) -> int:
    return seed_for(config.seed, "final_evaluation") if seed is None else seed


def _values(policy: BasePolicy, run: TrainedRun) -> Values | None:
    """Return the returns that a Q-network expects.

    None if the policy has no Q-network, or if the checkpoint lacks what its rewards were divided
    by, as the best one of a fork's parent does.
    """
    algorithm = run.config.algorithm
    checkpoint = run.checkpoint
    if not algorithm.has_q_network:
        return None
    learned = make_reward_scaling(
        checkpoint.config.algorithm.reward, gamma=algorithm.gamma, n_envs=0
    )
    has_state: FileName = "play.json"
    if learned is not None and learned.state():
        state = checkpoint.play().algorithm if has_state in checkpoint.files else {}
        if REWARD_STATE not in state:
            return None
        take_reward_state(learned, state)

    def best(observations: Observation) -> NDArray[np.float32]:
        with torch.no_grad():
            tensors = observation_tensors(observations, policy.device)
            values, _ = policy_outputs(policy, tensors)
        return values[:, 0].float().numpy()

    return Values(best, algorithm.gamma, learned)
