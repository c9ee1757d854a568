"""One process's hold on a run: built, trained by stretches, closed."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager

from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.vec_env import VecEnv

from game_rl.algorithms.algorithm import LeanAlgorithm
from game_rl.algorithms.automatic import resolve_auto
from game_rl.algorithms.data_parallel import torch_threads
from game_rl.algorithms.make_algorithm import make_algorithm
from game_rl.callbacks.boundary import StopTraining
from game_rl.callbacks.checkpoint_callback import check_finite
from game_rl.callbacks.evaluation import Evaluation, EvaluationGames, better_of
from game_rl.callbacks.resources import TRIALS_S
from game_rl.checkpoints.checkpoint import Checkpoint, is_offline
from game_rl.checkpoints.run_game import completed_game
from game_rl.checkpoints.training_log import CurveLog, closing_log, quiet_log_thread
from game_rl.config.schema import RunConfig
from game_rl.envs.make_env import make_observation_format
from game_rl.errors import Interrupted, TrainingError
from game_rl.events.event_log import EventLog
from game_rl.files.run_dir import RunDir
from game_rl.games.definition import Game
from game_rl.seeds import seed_for
from game_rl.system.machine import effective_cpus
from game_rl.system.process_memory import PssSampler
from game_rl.system.stop_request import StopRequest
from game_rl.training.extension import Extension, FirstPhase, GivenCallback, RunParts
from game_rl.training.make_callbacks import (
    Callbacks,
    episode_trackers,
    make_callbacks,
    make_extensions,
)
from game_rl.training.resuming import disk_fault, fixed_state, usable_best, what_is_saved
from game_rl.vec_env.make_vec_env import SpacesVecEnv, make_training_env, make_vec_env


class TrainingSession(AbstractContextManager["TrainingSession"]):
    """A run that can be trained stretch by stretch; a context manager, which closes it.

    One stretch or many give the same run: schedules, evaluations and the best policy depend only on
    the run's total. A process has one session at a time, inside `training_process`. Signals are
    handled by the command, not here.

    Args:
        config: config of the run.
        game: game that it plays.
        run_dir: existing directory to which no other process writes.
        checkpoint: checkpoint to continue from, whose logs were restored
            (`Checkpoint.restore_reports`). None: a new run.
        events: receives the run's events.
        stop: ends a stretch at its next boundary once a stop is requested.
        memory: samples the run's memory.
        extensions: extensions beside those that the config names.
        callbacks: custom callbacks beside those of the config, called after the run's own.
        more: additional SB3 callbacks, which are called before the run's own.
        cores_trials_s: seconds in which the workers' cores are found; see CoresCallback.

    Attributes:
        model: the algorithm.
        evaluation_env: envs of evaluations, separate from the training's.
        missing_replay: number of timesteps in the checkpoint's replay that could not be restored.

    Raises (in any method):
        TrainingError: the disk fails, or the weights became non-finite.
        WorkerError: an env raised, or its process died too often.
    """

    model: LeanAlgorithm
    evaluation_env: VecEnv

    def __init__(
        self,
        config: RunConfig,
        game: Game,
        run_dir: RunDir,
        *,
        checkpoint: Checkpoint | None = None,
        events: EventLog | None = None,
        stop: StopRequest | None = None,
        memory: PssSampler | None = None,
        extensions: Sequence[Extension] = (),
        callbacks: Sequence[GivenCallback] = (),
        more: Sequence[BaseCallback] = (),
        cores_trials_s: float = TRIALS_S,
    ) -> None:
        self._config = resolve_auto(config, game)
        self._game = completed_game(game, config, run_dir, checkpoint)
        self._run_dir = run_dir
        self._events = events or EventLog()
        self._stop = stop or StopRequest()
        self._stop.deadline_s = config.checkpoints.deadline_s
        self._memory = memory or PssSampler()
        self._more = more
        self._given = extensions
        self._cores_trials_s = cores_trials_s
        self._given_callbacks = callbacks
        self.missing_replay = 0
        self._open(checkpoint)

    def _open(self, checkpoint: Checkpoint | None) -> None:
        with ExitStack() as stack:
            parts = self._build(stack, checkpoint)
            self._extensions = make_extensions(parts, self._given)
            for extension in self._extensions:
                stack.enter_context(closing(extension))
            self._callbacks = make_callbacks(parts, self._extensions, self._more)
            stack.enter_context(self._events.heard_by(self._callbacks.hints.hear))
            phases = (extension.phase(parts, self._extensions) for extension in self._extensions)
            self._phase = next(filter(None, phases), None)
            self._callbacks.all.init_callback(self.model)
            if checkpoint is not None:
                with self._events.telling_if_slow(f"restoring checkpoint {checkpoint.name}"):
                    self._restore(checkpoint)
            for extension in self._extensions:
                extension.begin()
            self._closing = stack.pop_all()

    @property
    def num_timesteps(self) -> int:
        """Timesteps that the weights have learned from."""
        return self.model.num_timesteps

    @property
    def ended_by(self) -> str:
        """The condition of `stop_when` that has ended the run; empty if none has."""
        return self._callbacks.checkpoints.stop_counters.met

    @property
    def callbacks(self) -> Callbacks:
        return self._callbacks

    def learn_until(self, timesteps: int) -> None:
        """Train up to the first update at or beyond `timesteps`, and no vec step further.

        If `timesteps` is at least the run's total, train to the run's end, with its last evaluation
        and checkpoint. A condition of `stop_when` may end it earlier.

        Raises:
            Interrupted: a signal stopped the run.
            GameRLError: the run was stopped for another reason, which is the error.
        """
        total = self._config.total_timesteps
        if self._phase is not None and not self._learn_before(self._phase, timesteps):
            return
        is_there = self.num_timesteps >= min(timesteps, total) or bool(self.ended_by)
        if is_there and not self._callbacks.checkpoints.evaluation_due:
            return
        self._callbacks.stop.until = timesteps if timesteps < total else None
        missing = total - self.num_timesteps
        self._learn(
            lambda: self.model.learn(
                missing, callback=self._callbacks.all, reset_num_timesteps=False
            )
        )
        self._raise_what_has_stopped_it()

    def evaluate(self, episodes: int, seed: int) -> Evaluation:
        """Play with the present policy, without any effect on the training.

        It is played in the ways that the config says. Of two, the better one's result is returned.

        Raises:
            EvaluationInterrupted: a stop was requested meanwhile.
        """
        games = EvaluationGames(
            vec_env=self.evaluation_env,
            episodes=episodes,
            ways=self._config.evaluation_ways,
            seed=seed,
            stop=self._stop,
        )
        return better_of(games.play(self.model))

    def save(self) -> None:
        """Write a checkpoint of this moment, unless it exists or nothing was learned yet."""
        (self._phase or self._callbacks.checkpoints).save()

    def release(self) -> None:
        """Give up what others keep for this run; use it for a throw-away run."""
        for extension in self._extensions:
            extension.release()

    def close(self) -> None:
        """End the workers and close all files; may be called twice."""
        self._closing.close()

    def __exit__(self, *_: object) -> None:
        self._closing.close()

    # ------------------------------------------------------------------ building

    def _build(self, stack: ExitStack, checkpoint: Checkpoint | None) -> RunParts:
        """Build envs and algorithm, each closed with the stack."""
        config = self._config
        game = self._game
        before_timesteps = is_offline(config, checkpoint)
        vec_env = self._build_envs(stack, is_offline=before_timesteps)
        observation_format = make_observation_format(config.env, game)
        total = config.total_timesteps  # with which the run began, over which schedules run
        if checkpoint is not None:
            total = checkpoint.state.schedule_timesteps
        self.model = make_algorithm(
            config,
            vec_env,
            self._run_dir,
            observation_format=observation_format,
            stream=_stream(checkpoint),
            schedule_timesteps=total,
        )
        log = CurveLog(self._events, total_timesteps=config.total_timesteps)
        self.model.logger.output_formats.append(log)
        stack.enter_context(closing_log(self.model.logger))
        device = str(self.model.device)
        given = self._given_callbacks
        return RunParts(
            config=config,
            game=game,
            run_dir=self._run_dir,
            observation_format=observation_format,
            model=self.model,
            evaluation_env=self.evaluation_env,
            checkpoint=checkpoint,
            is_offline=before_timesteps,
            stop=self._stop,
            events=self._events,
            memory=self._memory,
            fixed=fixed_state(config, game, total, device=device, given_callbacks=given),
            cores_trials_s=self._cores_trials_s,
            given_callbacks=given,
        )

    def _build_envs(self, stack: ExitStack, *, is_offline: bool) -> VecEnv:
        """Build the envs of evaluations and of the training; return the latter.

        The offline phase plays nothing, so its training envs only stand in for real ones.
        """
        config = self._config
        game = self._game
        seed = self._config.seed
        training_env: VecEnv | None = None
        if not is_offline:
            training_env = stack.enter_context(
                closing(
                    make_training_env(
                        config.env,
                        game,
                        seed=seed_for(seed, "training_env"),
                        trackers=episode_trackers(config, is_training=True),
                    )
                )
            )
        n_envs = config.evaluation.envs_for(config.evaluation.episodes)
        evaluation_seed = seed_for(seed, "evaluation")
        self.evaluation_env = stack.enter_context(
            closing(
                make_vec_env(
                    config.env,
                    game,
                    n_envs=n_envs,
                    seed=evaluation_seed,
                    trackers=episode_trackers(config, is_training=False),
                )
            )
        )
        return training_env or SpacesVecEnv(config.env, game, n_envs=config.env.n_envs)

    def _restore(self, checkpoint: Checkpoint) -> None:
        model = self.model
        state = checkpoint.state
        for extension in self._extensions:
            self.missing_replay += extension.restore(checkpoint)
        plays_on = checkpoint.restore(model)
        for extension in self._extensions:
            extension.restored(plays_on=plays_on)
        if not plays_on:
            assert model.env is not None
            if (rewards := model.reward_scaling) is not None:
                rewards.begin_episodes()
            # a seed of its own, so that the run's first episodes are not repeated
            stream = f"training_env/{state.num_timesteps}"
            model.env.seed(seed_for(self._config.seed, stream))
        best = usable_best(self._run_dir, state, self._events.warn)
        if self._phase is not None:
            self._phase.continue_from(state, best)
            return
        self._callbacks.checkpoints.continue_from(state, best)
        self._callbacks.evaluation.continue_from_files()
        self._events.timesteps = model.num_timesteps

    # ------------------------------------------------------------------ learning

    def _learn_before(self, phase: FirstPhase, timesteps: int) -> bool:
        """Learn in a phase before timestep 0; return whether it is over and there is play to come.

        If so, the session is built anew from the checkpoint of timestep 0.
        """
        has_ended = False

        def learn() -> None:
            nonlocal has_ended
            has_ended = phase.learn(self._stop)

        self._learn(learn)
        self._raise_what_has_stopped_it()
        if has_ended and timesteps > 0:
            self.close()
            self._open(Checkpoint(self._run_dir.checkpoint(0)))
        return has_ended and timesteps > 0

    def _raise_what_has_stopped_it(self) -> None:
        reason = self._stop.reason
        if isinstance(reason, Interrupted):
            text = f"{reason}; {what_is_saved(self._run_dir)}"
            raise Interrupted(text, exit_code=reason.exit_code)
        if reason is not None:
            raise reason

    def _learn(self, learn: Callable[[], object]) -> None:
        try:
            with torch_threads():  # rollouts and updates set their own number of threads
                learn()
        except StopTraining:
            self._callbacks.stop.until = None
        except KeyboardInterrupt:
            text = f"stopped at once; {what_is_saved(self._run_dir)}"
            raise self._stop.interrupted(text) from None
        except ValueError:
            # an evaluation's Categorical refuses NaN logits with a ValueError of many lines
            check_finite(self.model.policy, self.num_timesteps)
            raise
        except OSError as error:
            raise TrainingError(disk_fault(error, self._run_dir)) from error


def _stream(checkpoint: Checkpoint | None) -> str:
    """Return the name of the stream that gives the algorithm's seed.

    It is another one in a fork whose generators begin anew.
    """
    if checkpoint is None or not checkpoint.draws_anew:
        return "algorithm"
    return f"algorithm/{checkpoint.state.num_timesteps}"


@contextmanager
def training_process() -> Iterator[None]:
    """Set torch's number of threads and quiet TensorBoard's thread; restore both afterwards.

    The number of threads is set this early because the initial weights depend on it, too.
    """
    with torch_threads(effective_cpus()), quiet_log_thread():
        yield
