"""Tuning of a run that is as small as a run can be, and of what was found in it."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from game_rl.config.schema import RunConfig
from game_rl.errors import DoesNotFitError
from game_rl.games.definition import load_game
from game_rl.measure.settings import EnvSetting, with_setting
from game_rl.measure.timed_training import VecStepTime
from game_rl.measure.tune import Trial, Tuning
from game_rl.preflight.workload import MeasuredSpeed
from game_rl.system.machine import detect_machine
from tests.tiny_run import MakeConfig

MEASURED = MeasuredSpeed(
    emulation_s=0.004,
    inference_s=0.002,
    gradient_step_s=0.001,
    evaluation_vec_step_s=0.001,
    checkpoint_s=0.001,
    start_s=0.001,
)


def tuning_of(config: RunConfig, *, seconds: float = 1, ram_bytes: int | None = None) -> Tuning:
    machine = detect_machine(config.run_dir)
    if ram_bytes is not None:
        machine = replace(machine, ram_available_bytes=ram_bytes)
    return Tuning(config, load_game(config.game), machine, seconds=seconds)


def found(tuning: Tuning, setting: EnvSetting, *rounds_s: float) -> Trial:
    """A trial with these seconds for a vec step in each round."""
    config = with_setting(tuning.present.config, setting)
    trial = Trial(setting, config, "fits", 1)
    measure(trial, *rounds_s)
    tuning.trials.append(trial)
    return trial


def measure(trial: Trial, *rounds_s: float) -> None:
    trial.coarse = VecStepTime(rounds_s[0] / 2, rounds_s[0] / 2)
    trial.rounds = [VecStepTime(s / 2, s / 2) for s in rounds_s[1:]]


def interrupt_at(call: int) -> Callable[[str], None]:
    calls = iter(range(call))

    def tell(_: str) -> None:
        if next(calls, None) is None:
            raise KeyboardInterrupt

    return tell


@pytest.mark.slow
def test_a_tuning_measures_what_fits_and_finds_the_fastest(make_config: MakeConfig) -> None:
    tuning = tuning_of(make_config("tuned", "env.n_envs=4"), seconds=5)
    told: list[str] = []
    tuning.run(told.append)
    assert told[0] == "a short training, to measure an update"
    assert "n_envs=4, n_workers=1" in told
    assert tuning.trials[0] is tuning.present
    assert tuning.best in tuning.trials
    for trial in tuning.trials:
        forecast = tuning.forecast(trial)
        assert (forecast is None) == (trial.coarse is None)
        assert forecast is None or 0 < forecast.timesteps_per_s < trial.collecting_per_s
    assert len({trial.config.rollout_timesteps for trial in tuning.trials}) == 1


@pytest.mark.slow
def test_an_interrupted_tuning_keeps_what_it_found(make_config: MakeConfig) -> None:
    tuning = tuning_of(make_config(), seconds=1_000)
    with pytest.raises(KeyboardInterrupt):
        tuning.run(interrupt_at(0))
    assert tuning.best is None
    with pytest.raises(KeyboardInterrupt):
        tuning.run(interrupt_at(2))  # an update and the present setting
    assert tuning.best is tuning.present


def test_what_fits_nowhere_is_not_measured(make_config: MakeConfig) -> None:
    tuning = tuning_of(make_config(), ram_bytes=1)
    with pytest.raises(DoesNotFitError, match="game-rl preflight"):
        tuning.run(interrupt_at(0))


def test_the_present_setting_stays_unless_another_is_clearly_faster(
    make_config: MakeConfig,
) -> None:
    tuning = tuning_of(make_config())
    tuning.measured = MEASURED
    measure(tuning.present, 0.010, 0.010, 0.010)
    assert tuning.best is tuning.present
    found(tuning, EnvSetting(2, 2, 16), 0.0099, 0.0099, 0.0099)
    assert tuning.best is tuning.present  # 1 % is not worth it
    found(tuning, EnvSetting(1, 1, 32), 0.001, 0.001, 0.006)
    assert tuning.best is tuning.present  # slower in one round: 1 / 6 ms against 2 / 10 ms
    faster = found(tuning, EnvSetting(4, 1, 8), 0.010, 0.012, 0.013)
    assert tuning.best is faster


def test_one_that_lost_before_the_finals_does_not_win(make_config: MakeConfig) -> None:
    tuning = tuning_of(make_config())
    tuning.measured = MEASURED
    measure(tuning.present, 0.010, 0.010, 0.010)
    found(tuning, EnvSetting(4, 1, 8), 0.001)
    assert tuning.best is tuning.present


def test_another_wins_where_the_present_setting_does_not_fit(make_config: MakeConfig) -> None:
    tuning = tuning_of(make_config())
    tuning.measured = MEASURED
    tuning.present.verdict = "does_not_fit"
    slow = found(tuning, EnvSetting(1, 1, 32), 0.1, 0.1)
    assert tuning.best is slow


def test_a_round_that_is_broken_off_does_not_count(make_config: MakeConfig) -> None:
    tuning = tuning_of(make_config())
    measure(tuning.present, 0.010)
    other = found(tuning, EnvSetting(1, 1, 32), 0.010)
    tuning._tell = interrupt_at(1)  # in the second turn
    with pytest.raises(KeyboardInterrupt):
        tuning._run_finals(0.0)
    assert not tuning.is_decided
    tuning._tell = lambda _: None
    tuning._run_finals(0.0)
    assert tuning.is_decided
    assert [len(trial.rounds) for trial in (tuning.present, other)] == [1, 1]
