"""Whatever tuning tries is a valid config of the same training."""

from hypothesis import given
from hypothesis import strategies as st

from game_rl.config.schema import RunConfig
from game_rl.measure.settings import (
    EnvSetting,
    env_settings,
    setting_of,
    with_setting,
    worker_settings,
)
from tests.preflight.conftest import make_config

CPUS = st.sampled_from([1, 2, 3, 6, 8, 16, 96])


@st.composite
def configs(draw: st.DrawFn) -> RunConfig:
    n_envs, n_steps = draw(st.integers(1, 128)), draw(st.integers(2, 512))
    rollout = n_envs * n_steps
    batches = [n for n in range(2, rollout + 1) if rollout % n == 0]
    return make_config(
        env={"n_envs": n_envs, "n_workers": draw(st.none() | st.integers(1, n_envs))},
        algorithm={
            "n_steps": n_steps,
            "batch_size": draw(st.sampled_from(batches)),
            "gamma": draw(st.sampled_from([0.0, 0.9, 0.99, 1.0])),
            "gae_lambda": draw(st.sampled_from([0.0, 0.95, 1.0])),
        },
        evaluation={"every_timesteps": 100_000},
    )


@given(configs(), CPUS)
def test_other_settings_are_valid_configs_with_the_same_rollouts_and_batches(
    config: RunConfig, cpus: int
) -> None:
    present = setting_of(config)
    settings = env_settings(config, cpus)
    for setting in [*settings, *worker_settings(present, cpus)]:
        other = with_setting(config, setting)  # raises where it is not valid
        assert setting_of(other) == setting
        assert other.rollout_timesteps == config.rollout_timesteps
        assert other.algorithm.batch_size == config.algorithm.batch_size
        assert other.env.n_envs >= setting.workers(cpus) >= 1
        assert with_setting(other, present) == config  # nothing else has changed
    tried = [(s.n_envs, s.workers(cpus)) for s in [present, *settings]]
    assert len(tried) == len(set(tried))


@given(configs(), CPUS)
def test_rollouts_of_one_env_stay_longer_than_advantages_look_ahead(
    config: RunConfig, cpus: int
) -> None:
    decay = config.algorithm.gamma * config.algorithm.gae_lambda
    for setting in env_settings(config, cpus):
        if setting.n_steps < config.algorithm.n_steps:
            assert decay**setting.n_steps < 0.14  # e ** -2: twice the horizon


def test_envs_double_from_one_for_each_cpu() -> None:
    config = make_config(algorithm={"n_steps": 256, "batch_size": 256, "gamma": 0.9})
    assert [s.n_envs for s in env_settings(config, 2)] == [2, 4, 16, 32, 64]
    assert [s.n_envs for s in env_settings(config, 16)] == [16, 32, 64, 128]


def test_rollouts_of_an_agent_with_a_memory_have_whole_sequences() -> None:
    """72 timesteps of 8 envs would be nearer to twice 4 envs than 48 of 12."""
    memory = {"sequence": 48}
    algorithm = {"n_steps": 144, "batch_size": 48, "gamma": 0.5, "memory": memory}
    config = make_config(env={"n_envs": 4}, algorithm=algorithm)
    assert [(s.n_envs, s.n_steps) for s in env_settings(config, 2)] == [(2, 288), (6, 96), (12, 48)]


def test_a_config_at_its_limits_has_other_settings_within_them() -> None:
    long = {"n_steps": 1_000_000, "batch_size": 64}
    rhythm = {"every_timesteps": 8_000_000}
    config = make_config(
        env={"n_envs": 8},
        algorithm=long,
        total_timesteps=8_000_000,
        evaluation=rhythm,
        checkpoints=rhythm,
    )
    assert [s.n_steps for s in env_settings(config, 2)] == [500_000, 250_000, 125_000]


def test_workers_are_tried_below_and_above_the_cpus() -> None:
    setting = EnvSetting(n_envs=32, n_workers=None, n_steps=32)
    assert setting.workers(cpus=16) == 30
    assert [s.n_workers for s in worker_settings(setting, 16)] == [8, 15, 16, 32]
    assert [s.n_workers for s in worker_settings(setting, 1)] == [1]
    assert [s.n_workers for s in worker_settings(EnvSetting(1, None, 32), 2)] == []


def test_pqn_s_horizon_is_that_of_its_lambda() -> None:
    def fewest_steps(q_lambda: float) -> int:
        pqn = {"name": "pqn", "n_steps": 64, "batch_size": 64, "gamma": 0.95, "q_lambda": q_lambda}
        config = make_config(env={"n_envs": 8}, algorithm=pqn)
        return min(setting.n_steps for setting in env_settings(config, 4))

    assert fewest_steps(0.5) == 4  # 2 / (1 - 0.95 * 0.5) = 3.8
    assert fewest_steps(0.95) == 32  # 20.5


def test_only_what_changed_is_told() -> None:
    present, other = EnvSetting(8, None, 128), EnvSetting(16, None, 64)
    assert other.changes_of(present) == {("env", "n_envs"): 16, ("algorithm", "n_steps"): 64}
    assert EnvSetting(8, 4, 128).changes_of(present) == {("env", "n_workers"): 4}
