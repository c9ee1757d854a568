"""Trainings with a pool: counted, exact over resumes, forked, without effect on evaluations."""

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from stable_baselines3.common.callbacks import BaseCallback

from game_rl.checkpoints.checkpoint import Checkpoint
from game_rl.config.schema import RunConfig
from game_rl.envs.custom_wrappers import GameEnv
from game_rl.envs.make_env import innermost
from game_rl.errors import UsageError
from game_rl.explore.archive import Archive
from game_rl.files.run_dir import RunDir
from game_rl.games.definition import load_game
from game_rl.pool.pool import POOL_FILE, SavedPool
from game_rl.training.session import TrainingSession, training_process
from game_rl.training.train import resume, train
from tests.pool.explored import explore
from tests.tiny_run import TINY_GAME, MakeConfig, command
from tests.training.forks import KINDS, fork_of, learned, quiet

SIZE = 12


@pytest.fixture(scope="module")
def explored(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("explored") / "tiny"
    return explore(root, str(TINY_GAME), start_state="level_1")


def settings(explored: Path, kind: str = "ppo", **pool: object) -> tuple[str, ...]:
    section = {"from": str(explored), "size": SIZE, "share": 0.6, "choose": "rank", **pool}
    return (
        *KINDS[kind],
        f"env.pool={section}",
        "env.max_episode_timesteps=9",
        "checkpoints.every_timesteps=32",
        "checkpoints.keep_last=20",
    )


def saved(run_dir: RunDir, timesteps: int) -> SavedPool:
    found = Checkpoint(run_dir.checkpoint(timesteps)).read(POOL_FILE)
    assert found is not None
    return found


class OwnCount(BaseCallback):
    """Counts the beginnings of the episodes that end, and sums up their rewards."""

    def __init__(self) -> None:
        super().__init__()
        self.ended: list[tuple[int, int | None, float]] = []
        self._rewards: list[float] = []

    def _on_step(self) -> bool:
        locals_: dict[str, Any] = self.locals
        rewards = locals_["rewards"].tolist()
        self._rewards = self._rewards or [0.0] * len(rewards)
        for env, (reward, done) in enumerate(zip(rewards, locals_["dones"], strict=True)):
            self._rewards[env] += reward
            if done:
                began = locals_["infos"][env].get("pool_state")
                self.ended.append((self.num_timesteps, began, self._rewards[env]))
                self._rewards[env] = 0.0
        return True


def pool_of_env(env: GameEnv) -> tuple[float, tuple[int, ...], tuple[int, ...]] | None:
    pool = innermost(env).starts.pool
    if pool.draw is None:
        return None
    return pool.draw.share, tuple(pool.draw.numbers), tuple(pool.states)


def test_a_pool_holds_states_of_the_archive_and_counts_what_came_of_them(
    make_config: MakeConfig, explored: Path
) -> None:
    config = make_config("run", *settings(explored))
    own = OwnCount()
    config.run_dir.mkdir()
    run_dir = RunDir(config.run_dir)
    with (
        training_process(),
        TrainingSession(config, load_game(config.game), run_dir, more=[own]) as session,
    ):
        session.learn_until(config.total_timesteps)
        assert session.model.env is not None
        in_envs = session.model.env.env_method("call", pool_of_env)
        in_evaluation = session.evaluation_env.env_method("call", pool_of_env)
    pool = saved(run_dir, 192)
    numbers = tuple(each.number for each in pool.states)
    assert in_envs == [(0.6, numbers, numbers)] * 2
    assert in_evaluation == [None] * 2
    cells = {
        (record.score.reward, record.score.timesteps)
        for record in Archive.read(explored / "archive.jsonl", 10**9).cells
    }
    assert len(pool.states) == SIZE
    assert {(each.reward, each.timesteps) for each in pool.states} <= cells
    counts = Counter(began for _, began, _ in own.ended)
    assert sum(counts.values()) > 15
    for number, tally in [(None, pool.starts), *((e.number, e.tally) for e in pool.states)]:
        assert tally.episodes == counts[number]
        rewards = sum(reward for _, began, reward in own.ended if began == number)
        assert tally.reward == pytest.approx(rewards, abs=1e-6)
    assert 0 < counts[None] < sum(counts.values())


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_a_run_that_was_stopped_and_resumed_is_the_run_that_was_not(
    make_config: MakeConfig, explored: Path, kind: str
) -> None:
    runs = {}
    for name, until in (("whole", None), ("cut", 80)):
        config = make_config(name, *settings(explored, kind))
        train(config, command(quiet(), until=until))
        runs[name] = RunDir(config.run_dir)
    whole, cut = runs["whole"], runs["cut"]
    resume(cut.root, command(quiet()))
    for path in whole.checkpoints_newest_first():
        timesteps = int(path.name)
        files = [run.checkpoint(timesteps) / POOL_FILE.name for run in (cut, whole)]
        assert files[0].read_bytes() == files[1].read_bytes()
        assert learned(cut, timesteps) == learned(whole, timesteps)
    assert saved(whole, 192).starts.episodes + len(saved(whole, 192).waiting) > 0
    assert cut.evaluations.read_bytes() == whole.evaluations.read_bytes()


@pytest.mark.slow
def test_a_fork_goes_on_with_the_pool_unless_it_comes_from_elsewhere(
    make_config: MakeConfig, explored: Path
) -> None:
    config = make_config("parent", *settings(explored))
    train(config, command(quiet()))
    parent = RunDir(config.run_dir)
    before = saved(parent, 96)
    same = fork_of(parent, 96, "same", env__pool__choose="uniform")
    other = fork_of(parent, 96, "other", env__pool__from=f"{parent.root}@192")
    anew = fork_of(parent, 96, "anew", fork__counters="new")
    for fork in (same, other, anew):
        train(fork, command(quiet(), until=fork.total_timesteps - 64))
    assert saved(RunDir(same.run_dir), 96) == before
    later = saved(RunDir(other.run_dir), 96)
    assert [e.state for e in later.states] == [e.state for e in before.states]
    assert min(each.number for each in later.states) == before.next_number
    assert sum(each.tally.episodes for each in later.states) == 0
    begun = saved(RunDir(anew.run_dir), 0)
    assert min(each.number for each in begun.states) == before.next_number


def test_a_pool_from_nowhere_is_a_mistake(
    make_config: MakeConfig, explored: Path, tmp_path: Path
) -> None:
    other = tmp_path / "other"
    other.mkdir()
    text = (explored / "explore.json").read_text(encoding="utf-8")
    sha256 = load_game(str(TINY_GAME)).rom.sha256
    (other / "explore.json").write_text(text.replace(sha256, "0" * 64), encoding="utf-8")
    faults = {"missing": "does not exist", ".": "has neither", "other": "explores another ROM"}
    for name, fault in faults.items():
        config = make_config("run", *settings(tmp_path / name))
        with pytest.raises(UsageError, match=f"env.pool.from: .* {fault}"):
            train(config, command(quiet()))
        assert not config.run_dir.exists()


def _whole(config: RunConfig) -> dict[str, str]:
    train(config, command(quiet()))
    return learned(RunDir(config.run_dir), 192)


@pytest.mark.slow
def test_the_number_of_workers_has_no_effect(make_config: MakeConfig, explored: Path) -> None:
    both = [
        _whole(make_config(f"run{n}", *settings(explored), f"env.n_workers={n}")) for n in (1, 2)
    ]
    assert both[0] == both[1]
