"""The teacher of a run: found, checked, measured, compared at the end."""

import json
from collections.abc import Iterator, Mapping
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import NDArray
from stable_baselines3.common.utils import obs_as_tensor

from game_rl import schedules
from game_rl.algorithms.automatic import placement_of
from game_rl.algorithms.data_parallel import torch_threads
from game_rl.algorithms.dqn import LeanDQN
from game_rl.algorithms.policies import PQNPolicy, load_q_network
from game_rl.algorithms.qdagger import Teacher, auto_temperature
from game_rl.callbacks.evaluation import Evaluation, EvaluationInterrupted, evaluate
from game_rl.checkpoints.checkpoint import Checkpoint
from game_rl.checkpoints.checkpoint_files import FileName
from game_rl.checkpoints.checkpoint_folder import best_of
from game_rl.checkpoints.checkpoint_state import CheckpointState
from game_rl.checkpoints.checkpoint_store import newest_valid_checkpoint
from game_rl.checkpoints.model_state import drawing_from
from game_rl.checkpoints.named import find_run
from game_rl.config.algorithms import TeacherConfig
from game_rl.config.allowed_changes import FORK_TEACHER, TEACHER
from game_rl.config.schema import RunConfig
from game_rl.config.strict_model import differences
from game_rl.config.values import run_at
from game_rl.errors import UsageError
from game_rl.events import TeacherReady, Validated
from game_rl.events.event_log import EventLog
from game_rl.events.lineage import Source, add_sources, manifest_sha256, read_lineage
from game_rl.files.pretrained import run_name
from game_rl.files.run_dir import RunDir
from game_rl.files.saved import Saved
from game_rl.games.definition import Game
from game_rl.playback.teacher_copy import (
    TeacherRecord,
    Validation,
    ValidationScore,
    forget_teacher,
    has_teacher_copy,
    link_teacher,
    read_teacher,
    read_validation,
    write_teacher,
    write_validation,
)
from game_rl.playback.trained_run import (
    TrainedRun,
    evaluate_run,
    open_own_run,
    open_teacher,
    open_trained_run,
)
from game_rl.seeds import seed_for
from game_rl.system.stop_request import StopRequest
from game_rl.system.units import format_bytes, with_frames
from game_rl.training.extension import Extension, RunParts
from game_rl.training.fork_parts import ForkPlan

_OBSERVATIONS = 512  # from which the temperature is computed
_RANDOM_ACTIONS = 0.1  # share in the play that gives these observations, so that it varies


def _evaluated(policy: PQNPolicy, parts: RunParts) -> Evaluation:
    """Play the games that the student plays in every evaluation.

    Raises:
        Interrupted: a stop was requested meanwhile.
    """
    try:
        return evaluate(
            policy,
            parts.evaluation_env,
            episodes=parts.config.evaluation.episodes,
            deterministic=True,
            seed=seed_for(parts.config.seed, "evaluation"),
            stop=parts.stop,
        )
    except EvaluationInterrupted:
        text = (
            f"{parts.stop.reason}; the teacher was being measured, and nothing was learned yet; "
            f"start again with {parts.run_dir.way_on}"
        )
        raise parts.stop.interrupted(text) from None


def _observed_values(policy: PQNPolicy, parts: RunParts) -> NDArray[np.float64]:
    """Return the teacher's values of actions [n, actions], float64, where its own play leads.

    The same seed gives the same values.
    """
    seed = seed_for(parts.config.seed, "teacher_temperature")
    rng = np.random.default_rng(seed)
    vec_env = parts.evaluation_env
    vec_env.seed(seed)
    observations = vec_env.reset()
    found = []
    with torch_threads(1), torch.no_grad():
        for _ in range(-(-_OBSERVATIONS // vec_env.num_envs)):
            assert not isinstance(observations, tuple)
            tensor = policy.q_net(obs_as_tensor(observations, policy.device))
            values = tensor.double().cpu().numpy()
            found.append(values)
            drawn = rng.integers(values.shape[1], size=len(values))
            is_random = rng.random(len(values)) < _RANDOM_ACTIONS
            actions = np.where(is_random, drawn, values.argmax(axis=1))
            observations, *_ = vec_env.step(actions)
    return np.concatenate(found)


class TeacherExtension(Extension):
    """The policy that a DQN is drawn towards, less as the student's success rate approaches it."""

    def __init__(self, teacher: Teacher) -> None:
        self._teacher = teacher

    @classmethod
    def of(cls, parts: RunParts) -> Self | None:
        """Give the run's model the teacher that the config names; None if it names none.

        It is read from the run's folder. The first time it is found, measured and copied there.

        Raises:
            GameRLError: it cannot teach this run, or the copy in the folder is damaged.
        """
        config = parts.config
        run_dir = parts.run_dir
        model = parts.model
        settings = config.algorithm.teacher
        if settings is None:
            return None
        assert isinstance(model, LeanDQN)
        with drawing_from(seed_for(config.seed, "teacher")):  # the run's generators stay
            if not has_teacher_copy(run_dir):
                run = find_teacher(settings, config, parts.game)
                policy = _policy(run.checkpoint, config, model)
                _keep(run_dir, run, _measured(run, policy, settings, parts))
            record, copy = read_teacher(run_dir)
            policy = _policy(Checkpoint(copy.path), config, model)
        timesteps = 0 if parts.checkpoint is None else parts.checkpoint.state.num_timesteps
        _tell(record, settings, parts.events, timesteps)
        model.teacher = Teacher(
            policy,
            temperature=record.temperature,
            weight=settings.weight,
            until=settings.until,
            success_rate=record.success_rate,
        )
        return cls(model.teacher)

    @classmethod
    def check_new(cls, config: RunConfig, game: Game) -> None:
        check_teacher(config, game)

    @classmethod
    def begin_anew(cls, run_dir: RunDir) -> None:
        forget_teacher(run_dir)

    @classmethod
    def forked(cls, plan: ForkPlan, run_dir: RunDir) -> Mapping[FileName, Saved]:
        """Link the parent's teacher with its measurements, if they remain valid."""
        parent = plan.source.run_dir
        if has_teacher_copy(parent) and not plan.differences.bound_by(FORK_TEACHER):
            add_sources(run_dir, *(s for s in read_lineage(parent).sources if s.kind == "teacher"))
            link_teacher(parent, run_dir)
        return {}

    def on_evaluated(self, success_rate: float | None) -> None:
        self._teacher.note_evaluation(success_rate)

    @classmethod
    def choose_best(
        cls, run_dir: RunDir, config: RunConfig, events: EventLog, stop: StopRequest
    ) -> None:
        """Let student and teacher play the same episodes, unless they have; the better is the best.

        The episodes' seed is used for nothing else: neither for evaluations, which selected the
        student's best policy, nor for the run's final evaluation, which reports the winner.
        """
        newest, _ = newest_valid_checkpoint(run_dir)
        best = best_of(run_dir, newest)
        now = newest.state.num_timesteps
        if (
            not (episodes := config.validation_episodes)
            or not has_teacher_copy(run_dir)
            or best is None
        ):
            return
        if read_validation(run_dir, at_timesteps=now, best=best.timesteps) is not None:
            return
        seed = seed_for(config.seed, "teacher_validation")

        def play(run: TrainedRun) -> ValidationScore:
            played = evaluate_run(run, episodes=episodes, seed=seed, stop=stop)
            return ValidationScore(mean_reward=played.mean_reward, success_rate=played.success_rate)

        validation = Validation(
            at_timesteps=now,
            student_timesteps=best.timesteps,
            episodes=episodes,
            student=play(open_own_run(run_dir.root, "best")),
            teacher=play(open_teacher(run_dir.root)),
        )
        student = validation.student
        teacher = validation.teacher
        events.emit(
            Validated(
                timesteps=events.timesteps,
                episodes=episodes,
                student_timesteps=best.timesteps,
                student_mean_reward=student.mean_reward,
                student_success_rate=student.success_rate,
                teacher_mean_reward=teacher.mean_reward,
                teacher_success_rate=teacher.success_rate,
                best="teacher" if validation.teacher_is_best else "student",
            )
        )
        write_validation(run_dir, validation)


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
        waited_frames=lineage.waited_since(record.waited_frames),
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
    algorithm = checkpoint.config.algorithm
    placement = placement_of(config)
    policy = PQNPolicy(
        model.observation_space,
        model.action_space,
        schedules.constant(0.0),
        layer_norm=algorithm.layer_norm,
        network=algorithm.network,
        precision=placement.precision,
    )
    load_q_network(policy, checkpoint.policy())
    policy.requires_grad_(False)
    policy.set_training_mode(False)
    return policy.to(device=placement.device, memory_format=torch.channels_last)  # type: ignore[call-overload,no-any-return]  # torch's stub lacks it


def _measured(
    run: TrainedRun, policy: PQNPolicy, settings: TeacherConfig, parts: RunParts
) -> TeacherRecord:
    evaluation = _evaluated(policy, parts)
    temperature = settings.temperature
    if temperature == "auto":
        try:
            temperature = auto_temperature(_observed_values(policy, parts))
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
        waited_frames=run.state.waited_frames,
        temperature=temperature,
        success_rate=evaluation.success_rate,
        mean_reward=evaluation.mean_reward,
        episodes=evaluation.episodes,
    )


def check_teacher(config: RunConfig, game: Game) -> TrainedRun | None:
    """Return the run that the config names as teacher, or None if it names none.

    Raises:
        GameRLError: it cannot teach this run.
    """
    teacher = config.algorithm.teacher
    return None if teacher is None else find_teacher(teacher, config, game)


def describe_teacher(config: RunConfig, game: Game) -> str | None:
    """Describe the teacher in one line, or the run's copy once it exists; None without a teacher.

    Raises:
        GameRLError: it cannot teach this run, or the copy is damaged.
    """
    run_dir = RunDir(config.run_dir)
    if config.algorithm.teacher is not None and has_teacher_copy(run_dir):
        record, _ = read_teacher(run_dir)
        when = with_frames(record.timesteps, record.frame_skip, record.waited_frames)
        return f"{run_dir.teacher}, the run's copy of {record.path}, timestep {when}"
    teacher = check_teacher(config, game)
    if teacher is None:
        return None
    name = teacher.checkpoint.config.algorithm.name
    theirs = run_name(teacher.run_dir.root)
    return f"{theirs}, {teacher.name} ({name}, {format_bytes(teacher.checkpoint.nbytes)})"


def find_teacher(settings: TeacherConfig, config: RunConfig, game: Game) -> TrainedRun:
    """Open the teacher: its best policy, or that of timestep T if the config says @T.

    Before the first evaluation, the newest policy counts as the best.

    Raises:
        GameRLError: there is no such policy, or it cannot teach this run.
    """
    root, timesteps = run_at(settings.run)
    name = str(timesteps)
    if timesteps is None:
        run_dir = find_run(root)
        newest, _ = newest_valid_checkpoint(run_dir)
        name = "latest" if best_of(run_dir, newest) is None else "best"
    run = open_trained_run(root, name)
    theirs = run.checkpoint.config
    if not theirs.algorithm.has_q_network:
        raise UsageError(
            f"the teacher {run_name(root)} is a run of {theirs.algorithm.name}, which has no "
            "values of actions; name a run of dqn or pqn in algorithm.teacher.run"
        )
    if found := list(_disagreements(run.state, theirs, config, game)):
        raise UsageError(
            f"the teacher {run_name(root)} has learned another task: "
            + "; ".join(found)
            + "; make them agree, or choose another teacher"
        )
    return run


def _disagreements(
    state: CheckpointState, theirs: RunConfig, config: RunConfig, game: Game
) -> Iterator[str]:
    """Yield the settings because of which an observation or an action has another meaning."""
    if state.rom_sha256 != game.rom.sha256:
        yield f"the ROM's sha256 is {state.rom_sha256} there and {game.rom.sha256} here"
    dumped = game.definition.model_dump(mode="json", by_alias=True)
    chosen = config.env.observation.parts
    documents: tuple[Mapping[str, Any], ...] = (state.game, dumped)
    pair: list[Mapping[str, Any]] = []
    for document in documents:  # without the parts that no observation has
        parts = {name: part for name, part in document.get("parts", {}).items() if name in chosen}
        pair.append({**document, "parts": parts})
    for bound in TEACHER.bound:
        key = bound.removeprefix("game.")
        if (pair[0].get(key) or None) != (pair[1].get(key) or None):
            there, now = (json.dumps(document.get(key)) for document in pair)
            yield f"{key} of game.yaml is {there} there and {now} here"
    different = differences(theirs.model_dump(), config.model_dump())
    for key in TEACHER.bound_of(different):
        taught, ours = different[key]
        yield f"{key} is {taught} there and {ours} here"
