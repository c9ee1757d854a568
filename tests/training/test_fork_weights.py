"""The weights and the optimiser that a fork begins with."""

import pytest
import torch

from game_rl.checkpoints.checkpoint import Checkpoint
from game_rl.config.strict_model import with_changed
from game_rl.errors import CheckpointError, UsageError
from game_rl.run_dir import RunDir
from game_rl.training.forking import make_fork, plan_fork
from game_rl.training.train import resume, train
from tests.tiny_run import MakeConfig, command
from tests.training.forks import KINDS, fork_of, learned, quiet, whole_run


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
