"""Find the fastest way to divide a training among emulators and processes, by trial."""

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace

from game_rl.config.schema import RunConfig
from game_rl.errors import DoesNotFitError
from game_rl.games.definition import Game
from game_rl.measure.settings import (
    EnvSetting,
    env_settings,
    setting_of,
    with_setting,
    worker_settings,
)
from game_rl.measure.timed_training import (
    TRAINING_S,
    TimedTraining,
    VecStepTime,
    measure_speed,
    median_of,
)
from game_rl.preflight.footprint import Verdict
from game_rl.preflight.preflight import preflight
from game_rl.preflight.random_play import probe_episodes
from game_rl.preflight.workload import (
    MeasuredSpeed,
    SpeedForecast,
    forecast_speed,
    training_arithmetic,
)
from game_rl.system.machine import Machine

_CORES_S = 1.0  # to find the workers' cores in a measurement; a run spends more time on it
_COARSE_S = 1.0  # of collecting, in one measurement
_FINE_S = 2.0
_SHORT_S = 60  # with less time than this, measurements are shorter, too
_COARSE_SHARE = 0.6  # of the time, at most, until the finals begin
_FINALISTS = 3  # besides the present setting
_MOST_ROUNDS = 5
_GAIN = 1.03  # a smaller gain is not worth a change, and hard to distinguish from noise


@dataclass
class Trial:
    """A setting and its measurements.

    Attributes:
        ram_bytes: peak of RAM that the preflight predicts.
        coarse: result of the first, short measurement; None before it, or if the setting does not
            fit.
        rounds: results in the rounds of the finals; empty for settings that are not finalists.
    """

    setting: EnvSetting
    config: RunConfig
    verdict: Verdict
    ram_bytes: int
    coarse: VecStepTime | None = None
    rounds: list[VecStepTime] = field(default_factory=list)

    @property
    def vec_step(self) -> VecStepTime | None:
        """The most reliable result: of the finals, or else of the coarse measurement."""
        if not self.rounds:
            return self.coarse
        return median_of(self.rounds)

    @property
    def collecting_per_s(self) -> float:
        """Timesteps per second of all envs together, without updates; 0 before a measurement."""
        return self._timesteps_per_s(self.vec_step) if self.vec_step else 0.0

    def _timesteps_per_s(self, vec_step: VecStepTime) -> float:
        return self.setting.n_envs / vec_step.total_s

    def won_every_round(self, other: "Trial") -> bool:
        """Whether this trial was faster in each round.

        Rounds are compared one by one, because a slow minute of the machine affects both trials.
        """
        pairs = zip(self.rounds, other.rounds, strict=False)
        return all(self._timesteps_per_s(a) > other._timesteps_per_s(b) for a, b in pairs)


class Tuning:
    """Tries settings of one config and keeps the results, so it can be interrupted at any time.

    First every setting that fits is measured for a second, then the fastest few and the present
    setting in turns. Rollouts, batches and updates are the same in all of them, so an update is
    measured once.

    Attributes:
        present: trial of the config's own setting.
        trials: trials of all settings, the present one first.
        measured: speed of the first setting that fits.

    Args:
        config: config whose numbers of envs and workers are varied.
        game: game that the run plays.
        machine: this machine.
        seconds: about how long the tuning may take.
    """

    def __init__(
        self,
        config: RunConfig,
        game: Game,
        machine: Machine,
        *,
        seconds: float,
    ) -> None:
        self._config = config
        self._game = game
        self._machine = machine
        self._seconds = seconds
        self._tell: Callable[[str], None] = lambda _: None
        self._scale = min(1.0, seconds / _SHORT_S)  # of what each measurement takes
        self._episode_timesteps = 0.0  # until a probe has measured it
        self.measured: MeasuredSpeed | None = None
        self.present = self._trial(setting_of(config))
        self.trials = [self.present]

    @property
    def cpus(self) -> int:
        """CPUs of the machine; settings without a number of workers derive it from them."""
        return self._machine.cpus

    def run(self, tell: Callable[[str], None]) -> None:
        """Measure until all rounds are played or the time is over.

        Args:
            tell: receives a line about each next measurement.

        Raises:
            DoesNotFitError: no setting fits this machine.
        """
        self._tell = tell
        started = time.monotonic()
        self._add(env_settings(self._config, self.cpus))
        fitting = [trial for trial in self.trials if self.fits(trial)]
        if not fitting:
            raise DoesNotFitError(
                "no number of envs makes the run fit this machine; game-rl preflight shows what "
                "takes the most and what to change"
            )
        self._tell("a short training, to measure an update")
        self._episode_timesteps = probe_episodes(self._config, self._game).mean
        self.measured = measure_speed(
            fitting[0].config, self._game, training_s=self._scale * TRAINING_S
        )
        coarse_end = started + _COARSE_SHARE * self._seconds
        end = started + self._seconds
        self._measure_coarsely(coarse_end)
        for trial in self._fastest(2):
            self._add(worker_settings(trial.setting, self.cpus))
        self._measure_coarsely(coarse_end)
        self._run_finals(end)

    def fits(self, trial: Trial) -> bool:
        """Whether the trial fits the machine comfortably, or as tightly as the present setting."""
        return trial.verdict in {"fits", self.present.verdict} - {"does_not_fit"}

    @property
    def is_decided(self) -> bool:
        """Whether the fastest settings were compared in turns, not only measured for a second."""
        return any(trial.rounds for trial in self.trials)

    @property
    def best(self) -> Trial | None:
        """The fastest trial that fits; the present one unless another is clearly faster.

        None before the first measurement.
        """
        # finalists first: the others were measured for a second only
        fastest = max(self.trials, key=lambda trial: (bool(trial.rounds), trial.collecting_per_s))
        if not fastest.collecting_per_s:
            return None
        return fastest if self._is_clearly_faster(fastest) else self.present

    def forecast(self, trial: Trial) -> SpeedForecast | None:
        """Forecast the whole run with this setting; None if it was not measured."""
        if self.measured is None or trial.vec_step is None:
            return None
        changed = replace(
            self.measured,
            emulation_s=trial.vec_step.emulation_s,
            inference_s=trial.vec_step.inference_s,
        )
        return forecast_speed(
            trial.config,
            training_arithmetic(trial.config),
            changed,
            episode_timesteps=self._episode_timesteps,
        )

    def _is_clearly_faster(self, trial: Trial) -> bool:
        if not self.fits(self.present):
            return True
        ours = self.forecast(trial)
        present = self.forecast(self.present)
        if ours is None or present is None:
            return False
        gain = ours.timesteps_per_s / present.timesteps_per_s
        return gain >= _GAIN and trial.won_every_round(self.present)

    def _trial(self, setting: EnvSetting) -> Trial:
        config = with_setting(self._config, setting)
        report = preflight(config, self._game, self._machine)
        return Trial(setting, config, report.verdict, report.footprint.ram.peak.bytes)

    def _add(self, settings: Iterable[EnvSetting]) -> None:
        for setting in settings:
            if not any(trial.setting.does_as(setting, self.cpus) for trial in self.trials):
                self.trials.append(self._trial(setting))

    def _measure_coarsely(self, end: float) -> None:
        """Measure the present setting in any case, and others while there is time."""
        for trial in self.trials:
            is_due = trial is self.present or time.monotonic() < end
            if is_due and trial.coarse is None and self.fits(trial):
                trial.coarse = self._measure(trial, _COARSE_S)

    def _run_finals(self, end: float) -> None:
        """Measure the finalists in rounds, each of which begins with another finalist.

        A round that is interrupted does not count.
        """
        finalists = self._fastest(_FINALISTS)
        if self.fits(self.present) and self.present not in finalists:
            finalists.append(self.present)
        if len(finalists) < 2:
            return
        for turn in range(_MOST_ROUNDS):
            started = time.monotonic()
            first = turn % len(finalists)
            turns = finalists[first:] + finalists[:first]
            measured = [self._measure(trial, _FINE_S) for trial in turns]
            for trial, vec_step in zip(turns, measured, strict=True):
                trial.rounds.append(vec_step)
            if time.monotonic() + (time.monotonic() - started) > end:
                return

    def _fastest(self, count: int) -> list[Trial]:
        measured = [trial for trial in self.trials if trial.coarse is not None]
        return sorted(measured, key=lambda trial: -trial.collecting_per_s)[:count]

    def _measure(self, trial: Trial, seconds: float) -> VecStepTime:
        setting = trial.setting
        self._tell(f"n_envs={setting.n_envs}, n_workers={setting.workers(self.cpus)}")
        with TimedTraining(trial.config, self._game, trials_s=_CORES_S) as training:
            training.warm_up()
            rollouts: list[VecStepTime] = []
            end = time.monotonic() + self._scale * seconds
            while not rollouts or time.monotonic() < end:
                rollouts.append(training.collect())
        return median_of(rollouts, n_averaged=training.n_averaged)
