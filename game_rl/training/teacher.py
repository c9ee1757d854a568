"""Find a run's teacher, compare it with the run, measure it, and keep it in the run's folder."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from stable_baselines3.common.base_class import BaseAlgorithm
from stable_baselines3.common.utils import obs_as_tensor
from stable_baselines3.common.vec_env import VecEnv

from game_rl import schedules
from game_rl.algorithms.automatic import placement_of
from game_rl.algorithms.dqn import LeanDQN
from game_rl.algorithms.policies import PQNPolicy, load_q_network
from game_rl.algorithms.qdagger import Teacher, auto_temperature
from game_rl.callbacks.evaluation import Evaluation, EvaluationInterrupted, evaluate
from game_rl.checkpoints.checkpoint import Checkpoint, config_of
from game_rl.checkpoints.random_numbers import drawing_from
from game_rl.config.algorithms import PPOConfig, TeacherConfig
from game_rl.config.schema import RunConfig
from game_rl.errors import Interrupted, UsageError
from game_rl.event_log import EventLog
from game_rl.events import TeacherReady
from game_rl.games.definition import Game
from game_rl.lineage import Source, add_sources, manifest_sha256, read_lineage
from game_rl.playback.teacher_copy import TeacherRecord, has_teacher, read_teacher, write_teacher
from game_rl.playback.trained_run import TrainedRun
from game_rl.run_dir import RunDir
from game_rl.seeds import seed_for
from game_rl.system.stop_request import StopRequest
from game_rl.system.threads import torch_threads
from game_rl.training.find_teacher import find_teacher, teacher_config

_OBSERVATIONS = 512  # from which the temperature is computed
_RANDOM_ACTIONS = 0.1  # share in the play that gives these observations, so that it varies


@dataclass(frozen=True, kw_only=True)
class Classroom:
    """The envs and games of a run's evaluations, in which its teacher is measured.

    Attributes:
        root: directory of the run.
        vec_env: envs of the evaluations.
        episodes: number of episodes of one evaluation.
        seed: seed of the run.
        stop: ends the measurement when a stop is requested.
    """

    root: Path
    vec_env: VecEnv
    episodes: int
    seed: int
    stop: StopRequest

    def evaluate(self, policy: PQNPolicy) -> Evaluation:
        """Play the games that the student plays in every evaluation.

        Raises:
            Interrupted: a stop was requested meanwhile.
        """
        try:
            return evaluate(
                policy,
                self.vec_env,
                episodes=self.episodes,
                deterministic=True,
                seed=seed_for(self.seed, "evaluation"),
                stop=self.stop,
            )
        except EvaluationInterrupted:
            reason = self.stop.reason
            code = reason.exit_code if reason is not None else Interrupted("").exit_code
            text = (
                f"{reason}; the teacher was being measured, and nothing was learned yet; begin "
                f"again with {RunDir(self.root).way_on}"
            )
            raise Interrupted(text, exit_code=code) from None

    def observed_values(self, policy: PQNPolicy) -> NDArray[np.float64]:
        """Return the teacher's values of actions [n, actions], float64, where its own play leads.

        The same seed gives the same values.
        """
        seed = seed_for(self.seed, "teacher_temperature")
        rng, vec_env = np.random.default_rng(seed), self.vec_env
        vec_env.seed(seed)
        observations, found = vec_env.reset(), []
        with torch_threads(1), torch.no_grad():
            for _ in range(-(-_OBSERVATIONS // vec_env.num_envs)):
                assert isinstance(observations, np.ndarray)
                tensor = policy.q_net(obs_as_tensor(observations, policy.device))
                values = tensor.double().cpu().numpy()
                found.append(values)
                drawn = rng.integers(values.shape[1], size=len(values))
                is_random = rng.random(len(values)) < _RANDOM_ACTIONS
                actions = np.where(is_random, drawn, values.argmax(axis=1))
                observations, *_ = vec_env.step(actions)
        return np.concatenate(found)


def make_teacher(
    config: RunConfig,
    game: Game,
    run_dir: RunDir,
    model: BaseAlgorithm,
    classroom: Classroom,
    *,
    events: EventLog,
    timesteps: int,
) -> Teacher | None:
    """Return the teacher that the config names, or None if it names none.

    It is read from the run's folder. The first time it is found, measured and copied there.

    Args:
        model: the student.
        classroom: the envs in which a new teacher is measured.
        events: receives the event TeacherReady and warnings.

    Raises:
        GameRLError: it cannot teach this run, or the copy in the folder is damaged.
    """
    settings = teacher_config(config)
    if settings is None or not isinstance(model, LeanDQN):
        return None
    with drawing_from(seed_for(config.seed, "teacher")):  # the run's generators stay as they are
        if not has_teacher(run_dir):
            run = find_teacher(settings, config, game)
            policy = _policy(run.checkpoint, config, model)
            _keep(run_dir, run, _measured(run, policy, settings, classroom))
        record, checkpoint = read_teacher(run_dir)
        policy = _policy(checkpoint, config, model)
    _tell(record, settings, events, timesteps)
    return Teacher(
        policy,
        temperature=record.temperature,
        weight=settings.weight,
        until=settings.until,
        success_rate=record.success_rate,
    )


def _keep(run_dir: RunDir, teacher: TrainedRun, record: TeacherRecord) -> None:
    """Add the teacher to the run's lineage, then copy it into the run's folder.

    The copy comes last, because its existence says that the run has a teacher.
    """
    lineage = read_lineage(teacher.run_dir)
    source = Source(
        kind="teacher",
        run=record.run or record.path,
        path=record.path,
        timesteps=record.timesteps,
        began_at=lineage.began_at,
        frame_skip=record.frame_skip,
        sha256=record.sha256,
        sources=lineage.sources,
    )
    add_sources(run_dir, source)
    write_teacher(run_dir, teacher.checkpoint.path, record)


def _tell(record: TeacherRecord, settings: TeacherConfig, events: EventLog, timesteps: int) -> None:
    events.emit(
        TeacherReady(
            timesteps=timesteps,
            policy_timesteps=record.timesteps,
            **record.model_dump(
                include={"run", "path", "sha256", "temperature", "success_rate", "mean_reward"}
            ),
        )
    )
    if not record.success_rate:
        until = "the run's end" if settings.until is None else f"timestep {settings.until:,}"
        what = "the game does not say what success is"
        if record.success_rate is not None:
            what = f"the teacher succeeded in none of {record.episodes} episodes"
        events.warn(
            f"{what}, so the teacher's weight is {settings.weight:g} until {until}, however good "
            "the agent becomes; set algorithm.teacher.until to end it sooner"
        )


def _policy(checkpoint: Checkpoint, config: RunConfig, model: LeanDQN) -> PQNPolicy:
    """Return the checkpoint's Q-network, on the student's device and in its number format."""
    algorithm, placement = config_of(checkpoint).algorithm, placement_of(config)
    assert not isinstance(algorithm, PPOConfig)
    policy = PQNPolicy(
        model.observation_space,
        model.action_space,
        schedules.constant(0.0),
        layer_norm=algorithm.layer_norm,
        precision=placement.precision,
    )
    load_q_network(policy, checkpoint.policy())
    policy.requires_grad_(False)
    policy.set_training_mode(False)
    return policy.to(device=placement.device, memory_format=torch.channels_last)  # type: ignore[call-overload,no-any-return]  # torch's stub lacks it


def _measured(
    run: TrainedRun, policy: PQNPolicy, settings: TeacherConfig, classroom: Classroom
) -> TeacherRecord:
    evaluation = classroom.evaluate(policy)
    temperature = settings.temperature
    if temperature == "auto":
        try:
            temperature = auto_temperature(classroom.observed_values(policy))
        except ValueError as error:
            raise UsageError(
                "algorithm.teacher.temperature is auto, but no temperature suits the teacher "
                f"{settings.run}: {error}; write a number, such as 0.1, or choose a teacher that "
                "has learned more"
            ) from None
    identity = run.run_dir.identity() if run.run_dir.identity_file.exists() else None
    return TeacherRecord(
        run="" if identity is None else identity.id,
        path=str(run.run_dir.root.absolute()),
        timesteps=run.state.num_timesteps,
        sha256=manifest_sha256(run.checkpoint.path),
        frame_skip=run.config.env.frame_skip,
        temperature=temperature,
        success_rate=evaluation.success_rate,
        mean_reward=evaluation.mean_reward,
        episodes=evaluation.episodes,
    )
