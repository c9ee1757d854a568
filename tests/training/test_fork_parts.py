"""A fork's Lake: rows of its own, and those of its parent that its replay needs."""

import shutil
from pathlib import Path

import numpy as np
import pytest
import torch
from gymnasium import spaces
from torch import nn

from game_rl.algorithms.make_algorithm import make_policy
from game_rl.algorithms.policies import DQNPolicy
from game_rl.checkpoints.checkpoint import Checkpoint
from game_rl.config.algorithms import AlgorithmConfig, DQNConfig, PPOConfig, PQNConfig
from game_rl.config.strict_model import with_changed
from game_rl.errors import CheckpointError, UsageError
from game_rl.files.run_dir import RunDir
from game_rl.lake.lake import Lake
from game_rl.lake.mark import LAKE_FILE
from game_rl.training.fork_parts import add_weight_noise
from game_rl.training.forking import make_fork, plan_fork
from game_rl.training.train import resume, train
from tests.tiny_run import MakeConfig, command
from tests.training.extensions.test_lake_extension import timesteps
from tests.training.forks import KINDS, fork_of, learned, quiet, whole_run

_OBSERVATIONS = spaces.Box(0, 255, (4, 36, 36), np.uint8)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["dqn-lake", "pqn"])
def test_a_forks_lake_has_rows_of_its_own_under_its_own_name(
    kind: str, make_config: MakeConfig
) -> None:
    parent = whole_run(make_config, kind)
    whole = timesteps(parent.lake)
    config = fork_of(parent, 128, "fork")
    train(config, command(quiet()))
    fork = RunDir(config.run_dir)
    ids = [run.identity().id for run in (parent, fork)]
    own = timesteps(fork.lake, ids[1])
    assert {env: len(rows) for env, rows in own.items()} == {0: 32, 1: 32}
    values = {env: [row[1:] for row in rows] for env, rows in own.items()}
    assert values == {env: [row[1:] for row in rows[64:]] for env, rows in whole.items()}
    if kind == "dqn-lake":  # whose replay needs its parent's rows
        assert {env: [row[0] for row in rows] for env, rows in own.items()} == {
            env: list(range(64, 96)) for env in (0, 1)
        }
        assert timesteps(fork.lake, ids[0]) == {e: rows[:64] for e, rows in whole.items()}
        shared = [p for p in fork.lake.glob("*.segment") if p.stat().st_nlink > 1]
        assert shared
        assert all(path.name.startswith(ids[0]) for path in shared)
        origins = [
            (run.lake / "origins" / f"{ids[0]}.json").read_text(encoding="utf-8")
            for run in (parent, fork)
        ]
        assert origins[0] == origins[1]
    else:
        assert Lake.open(fork.lake).view().streams == [ids[1]]


@pytest.mark.slow
def test_a_fork_lets_go_of_its_parents_rows_when_its_replay_has_none_of_them(
    make_config: MakeConfig,
) -> None:
    parent = whole_run(make_config, "dqn-lake")
    config = fork_of(parent, 64, "fork", total_timesteps=320, checkpoints__keep_last=1)
    train(config, command(quiet()))
    lake = Checkpoint(RunDir(config.run_dir).checkpoint(320)).read(LAKE_FILE)
    assert lake is not None
    assert lake.ancestors == ()


@pytest.mark.slow
def test_forks_of_one_shared_lake_write_streams_of_their_own(
    make_config: MakeConfig, tmp_path: Path
) -> None:
    """And the parent goes on beside its fork, whose replay still has the parent's rows."""
    shared = tmp_path / "shared"
    parent = whole_run(make_config, "dqn-lake", f"lake.path={shared}", "total_timesteps=256")
    expected = learned(parent, 256)
    shutil.rmtree(parent.checkpoint(256))
    config = fork_of(parent, 64, "fork")
    train(config, command(quiet(), until=128))
    resume(parent.root, command(quiet()))
    resume(config.run_dir, command(quiet()))
    fork = RunDir(config.run_dir)
    assert learned(parent, 256) == learned(fork, 256) == expected
    streams = {run.identity().id for run in (parent, fork)}
    assert set(Lake.open(shared).view().streams) == streams


@pytest.mark.slow
def test_new_counters_begin_at_zero_with_the_parents_weights(make_config: MakeConfig) -> None:
    parent = whole_run(make_config, "pqn")
    plan = plan_fork(fork_of(parent, 192, "fork", fork__counters="new", total_timesteps=64))
    make_fork(plan)
    fork = RunDir(plan.config.run_dir)
    first = Checkpoint(fork.checkpoint(0))
    assert learned(fork, 0) == learned(parent, 192)
    assert (first.state.num_timesteps, first.state.best) == (0, None)
    assert not fork.evaluations.exists()
    resume(fork.root, command(quiet()))
    rows = fork.evaluations.read_text(encoding="utf-8").splitlines()[1:]
    assert [row.split(",")[0] for row in rows] == ["64"]


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "other"), [("pqn", "dqn"), ("dqn", "pqn")])
def test_another_algorithm_takes_the_weights_that_fit(
    kind: str, other: str, make_config: MakeConfig
) -> None:
    parent = whole_run(make_config, kind)
    config = make_config("fork", *KINDS[other], "recording.episodes=0")
    section = {"run": str(parent.root), "counters": "new"}
    with pytest.raises(UsageError, match=f"{other} cannot continue with the optimiser of {kind}"):
        plan_fork(with_changed(config, {("fork",): section}))
    section["optimiser"] = "new"
    train(with_changed(config, {("fork",): section}), command(quiet(), until=64))
    first, theirs = (
        Checkpoint(RunDir(r).checkpoint(n)).policy()
        for r, n in ((config.run_dir, 0), (parent.root, 192))
    )
    names = [name for name in first if name.startswith("q_net.")]
    assert names
    assert all(torch.equal(first[name], theirs[name]) for name in names)
    assert RunDir(config.run_dir).checkpoint(64).is_dir()


def test_weights_that_do_not_fit_are_refused_by_the_name_of_a_tensor(
    make_config: MakeConfig,
) -> None:
    parent = whole_run(make_config, "pqn")
    for changed in ({"algorithm__layer_norm": "none"}, {"env__frame_stack": 2}):
        with pytest.raises(CheckpointError, match=r"q_net\.features_extractor"):
            plan_fork(fork_of(parent, 192, "fork", total_timesteps=256, **changed))
    assert not parent.root.with_name("fork").exists()


@pytest.mark.slow
def test_noise_on_the_weights_is_drawn_from_the_forks_seed(make_config: MakeConfig) -> None:
    parent = whole_run(make_config, "dqn")
    weights = []
    for name, seed in (("one", 5), ("again", 5), ("other", 6)):
        plan = plan_fork(fork_of(parent, 128, name, fork__weight_noise=0.05, seed=seed))
        make_fork(plan)
        weights.append(Checkpoint(RunDir(plan.config.run_dir).checkpoint(128)).policy())
    theirs = Checkpoint(parent.checkpoint(128)).policy()
    for tensor in ("q_net.q_net.0.weight", "q_net_target.q_net.0.weight"):
        one, again, other, before = (t[tensor] for t in (*weights, theirs))
        assert torch.equal(one, again)
        assert not torch.equal(one, other)
        assert (one - before).norm() == pytest.approx(0.05 * float(before.norm()), rel=0.5)
    assert torch.equal(weights[0]["q_net.q_net.0.bias"], theirs["q_net.q_net.0.bias"])


@pytest.mark.parametrize(
    "config",
    [
        PPOConfig(),
        PQNConfig(name="pqn", layer_norm="picture"),
        DQNConfig(name="dqn", layer_norm="channels"),
    ],
    ids=lambda config: config.name,
)
def test_each_layers_weights_move_by_sigma_times_their_size_and_nothing_else_does(
    config: AlgorithmConfig,
) -> None:
    torch.manual_seed(1)
    policy = make_policy(config, _OBSERVATIONS, spaces.Discrete(5))
    before = {name: tensor.clone() for name, tensor in policy.state_dict().items()}
    add_weight_noise(policy, 0.1, np.random.default_rng(7))
    rng, moved = np.random.default_rng(7), set()
    for name, layer in policy.named_modules():
        if isinstance(layer, nn.Conv2d | nn.Linear) and "target" not in name:
            old = before[f"{name}.weight"].numpy()
            size = (old.astype(np.float64) ** 2).mean() ** 0.5
            expected = old + 0.1 * size * rng.standard_normal(old.shape, dtype=np.float32)
            found = layer.weight.detach().numpy()
            np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-7)
            assert (found - old).std() == pytest.approx(0.1 * size, rel=0.1)
            moved.add(layer.weight.data_ptr())
    for name, tensor in policy.state_dict().items():
        if "target" not in name and tensor.data_ptr() not in moved:
            assert torch.equal(tensor, before[name]), name
    if isinstance(policy, DQNPolicy):
        for one, other in zip(
            policy.q_net.parameters(), policy.q_net_target.parameters(), strict=True
        ):
            assert torch.equal(one, other)


def test_the_generator_says_it_all() -> None:
    weights = []
    for seed in (3, 3, 4):
        torch.manual_seed(1)
        policy = make_policy(PQNConfig(name="pqn"), _OBSERVATIONS, spaces.Discrete(5))
        add_weight_noise(policy, 0.02, np.random.default_rng(seed))
        weights.append(next(policy.parameters()).detach().numpy().copy())
    assert np.array_equal(weights[0], weights[1])
    assert not np.array_equal(weights[0], weights[2])
