"""Trainings with a pool: counted, exact over resumes, forked, without effect on evaluations."""

import json
from collections import Counter
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import pytest
from stable_baselines3.common.callbacks import BaseCallback

from game_rl.checkpoints.checkpoint import Checkpoint
from game_rl.config.schema import EnvConfig, RunConfig
from game_rl.envs.custom_wrappers import GameEnv
from game_rl.envs.episode_starts import StartPool
from game_rl.envs.make_env import innermost, make_game_env
from game_rl.errors import UsageError
from game_rl.events import Event, PoolCounted
from game_rl.events.event_log import EventLog
from game_rl.explore.archive import Archive
from game_rl.files.durable_files import folder_bytes
from game_rl.files.run_dir import RunDir
from game_rl.games.definition import load_game
from game_rl.pool.pool import POOL_FILE, SavedPool
from game_rl.pool.pool_watch import PoolWatch
from game_rl.training.session import TrainingSession, training_process
from game_rl.training.train import resume, train
from tests.explore.made_archives import write_way_to_the_right
from tests.pool.explored import explore
from tests.tiny_run import TINY_GAME, MakeConfig, command
from tests.training.forks import KINDS, fork_of, learned, quiet
from tests.training.test_logged_training import facts, play_all

SIZE = 12


@pytest.fixture(scope="module")
def explored(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("explored") / "tiny"
    return explore(root, str(TINY_GAME), start_state="level_1")


GROWS: Mapping[str, object] = {
    "from": None,
    "save_on": {"new_maximum": "player_x"},
    "size": 6,
    "choose": "success",
    "goal": "reward",
    "migrate": "furthest",
}
"""A pool that begins empty."""


def settings(
    explored: Path, kind: str = "ppo", pool: Mapping[str, object] = MappingProxyType({})
) -> tuple[str, ...]:
    section = {"from": str(explored), "size": SIZE, "share": 0.6, "choose": "rank", **pool}
    return (
        *KINDS[kind],
        f"env.pool={json.dumps(section)}",
        "env.max_episode_timesteps=9",
        "checkpoints.every_timesteps=32",
        "checkpoints.keep_last=20",
    )


def saved(run_dir: RunDir, timesteps: int) -> SavedPool:
    found = Checkpoint(run_dir.checkpoint(timesteps)).read(POOL_FILE)
    assert found is not None
    return found


def episodes(pool: SavedPool) -> int:
    return sum(tally.episodes for tally in (pool.starts, *(each.tally for each in pool.states)))


def trained_beside(config: RunConfig, own: BaseCallback) -> RunDir:
    """Train to the end with one more callback."""
    config.run_dir.mkdir()
    run_dir = RunDir(config.run_dir)
    game = load_game(config.game)
    with training_process(), TrainingSession(config, game, run_dir, more=[own]) as session:
        session.learn_until(config.total_timesteps)
    return run_dir


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


class OwnMaxima(BaseCallback):
    """Notes, at the end of each rollout, what the envs have found that is higher than ever."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[tuple[float, int]] = []
        self._best: list[float] = []
        self._timesteps: list[int] = []
        self._highest: list[float] = []
        self._new: list[list[tuple[float, int]]] = []

    def _x(self, env: int) -> float:
        return float(self.training_env.env_method("read_variables", indices=[env])[0]["player_x"])

    def _on_rollout_start(self) -> None:
        n = self.training_env.num_envs
        for found in self._new:
            self.found += found
        self._new = [[] for _ in range(n)]
        self._highest = [max((value for value, _ in self.found), default=-1.0)] * n
        if not self._best:
            self._best = [self._x(env) for env in range(n)]
            self._timesteps = [0] * n

    def _on_training_end(self) -> None:
        self._on_rollout_start()

    def _on_step(self) -> bool:
        locals_: dict[str, Any] = self.locals
        for env, info in enumerate(locals_["infos"]):
            self._timesteps[env] += 1
            is_over = bool(locals_["dones"][env])
            x = float(info["game"]["player_x"]) if is_over else self._x(env)
            is_terminal = is_over and not info["TimeLimit.truncated"]
            if x > self._best[env]:
                self._best[env] = x
                if x >= self._highest[env] and not is_terminal:
                    self._highest[env] = x
                    self._new[env].append((x, self._timesteps[env]))
            if is_over:
                self._best[env] = self._x(env)
                self._timesteps[env] = 0
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
    told: list[Event] = []
    log = EventLog(listeners=[told.append])
    with (
        training_process(),
        TrainingSession(config, load_game(config.game), run_dir, events=log, more=[own]) as session,
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
    *_, newest = (event for event in told if isinstance(event, PoolCounted))
    assert newest.timesteps == 192
    levels = {level.least_reward: level for level in newest.levels}
    assert len(levels) > 1
    for reward, level in levels.items():
        states = [each for each in pool.states if each.reward == pytest.approx(reward)]
        assert level.states == len(states)
        assert level.episodes == sum(each.tally.episodes for each in states)
        assert level.successes == sum(each.tally.successes for each in states)
    assert sum(level.states for level in levels.values()) == SIZE


class OwnSuccesses(BaseCallback):
    """Sums up what each term but `progress` has earned in the episodes that ended."""

    def __init__(self) -> None:
        super().__init__()
        self.ended: list[tuple[float, float]] = []

    def _on_step(self) -> bool:
        for is_done, info in zip(self.locals["dones"], self.locals["infos"], strict=True):
            if is_done:
                terms: dict[str, float] = dict(info["reward_terms"])
                progress = terms.pop("progress")
                self.ended.append((sum(terms.values()), progress))
        return True


@pytest.mark.slow
def test_what_a_potential_earns_makes_no_success(
    make_config: MakeConfig, explored: Path, tmp_path: Path
) -> None:
    to_the_right = write_way_to_the_right(tmp_path / "ways", load_game(str(TINY_GAME)), goal=60)
    reward = {"progress": {"potential": str(to_the_right), "weight": 0.05}}
    section = {"goal": "reward", "share": 1e-9}
    config = make_config(
        "run", *settings(explored, pool=section), f"env.rewards={json.dumps(reward)}"
    )
    own = OwnSuccesses()
    run_dir = trained_beside(config, own)
    successes = sum(earned > 0 for earned, _ in own.ended)
    assert saved(run_dir, 192).starts.successes == successes
    assert any(earned <= 0 < earned + progress for earned, progress in own.ended)


def lose_pool(env: GameEnv) -> None:
    """Leave an env as a new process has it."""
    watch = env.tracker(PoolWatch)
    assert watch is not None
    watch.pool = StartPool()


@pytest.mark.slow
def test_an_env_whose_process_is_a_new_one_gets_the_whole_pool_again(
    make_config: MakeConfig, explored: Path
) -> None:
    config = make_config("run", *settings(explored))
    config.run_dir.mkdir()
    run_dir = RunDir(config.run_dir)
    with (
        training_process(),
        TrainingSession(config, load_game(config.game), run_dir) as session,
    ):
        session.learn_until(32)
        env = session.model.env
        assert env is not None
        env.env_method("call", lose_pool, indices=[1])
        session.learn_until(64)
        first, second = env.env_method("call", pool_of_env)
    assert first == second
    assert len(first[2]) == SIZE


@pytest.mark.slow
@pytest.mark.parametrize("grows", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_a_run_that_was_stopped_and_resumed_is_the_run_that_was_not(
    make_config: MakeConfig,
    explored: Path,
    monkeypatch: pytest.MonkeyPatch,
    kind: str,
    grows: bool,
) -> None:
    # DQN hands out its pool this often: between checkpoints, some ends wait and some states, too
    monkeypatch.setattr("game_rl.training.extension.FREQUENT_BOUNDARIES_TIMESTEPS", 24)
    runs = {}
    for name, until in (("whole", None), ("cut", 80)):
        config = make_config(name, *settings(explored, kind, GROWS if grows else {}))
        train(config, command(quiet(), until=until))
        runs[name] = RunDir(config.run_dir)
    whole, cut = runs["whole"], runs["cut"]
    resume(cut.root, command(quiet()))
    for path in whole.checkpoints_newest_first():
        timesteps = int(path.name)
        files = [run.checkpoint(timesteps) / POOL_FILE.name for run in (cut, whole)]
        assert files[0].read_bytes() == files[1].read_bytes()
        assert learned(cut, timesteps) == learned(whole, timesteps)
    pool = saved(whole, 192)
    assert pool.starts.episodes > 0
    assert sum(each.tally.episodes for each in pool.states) > 0
    assert (pool.next_number > len(pool.states)) == grows
    assert cut.evaluations.read_bytes() == whole.evaluations.read_bytes()
    assert facts(cut) == facts(whole)
    logged = play_all(cut)
    assert not any(each.fault for each in logged)
    assert sum(each.pool_state is not None for each in logged) > 5
    plan = json.loads(whole.preflight.read_text(encoding="utf-8"))["disk"]["parts"]
    (forecast,) = (part["bytes"] for part in plan if part["name"] == "logged episodes")
    assert folder_bytes(whole.episodes) <= forecast <= 4 * folder_bytes(whole.episodes)


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
        train(fork, command(quiet(), until=128 if fork is not anew else 32))
    kept = saved(RunDir(same.run_dir), 128)
    assert [e.number for e in kept.states] == [e.number for e in before.states]
    assert episodes(kept) > episodes(before) > 0
    for later in (saved(RunDir(other.run_dir), 128), saved(RunDir(anew.run_dir), 32)):
        assert [e.state for e in later.states] == [e.state for e in before.states]
        assert min(each.number for each in later.states) == before.next_number


def test_a_pool_from_nowhere_is_a_mistake(
    make_config: MakeConfig, explored: Path, tmp_path: Path
) -> None:
    other = tmp_path / "other"
    other.mkdir()
    text = (explored / "explore.json").read_text(encoding="utf-8")
    sha256 = load_game(str(TINY_GAME)).rom.sha256
    (other / "explore.json").write_text(text.replace(sha256, "0" * 64), encoding="utf-8")
    faults = {"missing": "does not exist", ".": "has neither", "other": "has explored another ROM"}
    for name, fault in faults.items():
        config = make_config("run", *settings(tmp_path / name))
        with pytest.raises(UsageError, match=f"env.pool.from: .* {fault}"):
            train(config, command(quiet()))
        assert not config.run_dir.exists()


def test_a_variable_that_does_not_exist_is_a_mistake(
    make_config: MakeConfig, tmp_path: Path
) -> None:
    section = {**GROWS, "save_on": {"new_maximum": "player_y"}}
    config = make_config("run", *settings(tmp_path, pool=section))
    with pytest.raises(UsageError, match=r"save_on.new_maximum: .*player_y"):
        train(config, command(quiet()))


@pytest.mark.slow
def test_a_pool_grows_by_the_states_in_which_a_variable_is_higher_than_ever(
    make_config: MakeConfig, explored: Path
) -> None:
    """Compare with the values that every info tells, in order of the envs."""
    section = {**GROWS, "size": 1_000, "share": 1e-9, "migrate": None}
    config = make_config("run", *settings(explored, pool=section))
    own = OwnMaxima()
    run_dir = trained_beside(config, own)
    game = load_game(config.game)
    pool = saved(run_dir, 192)
    by_number = sorted(pool.states, key=lambda each: each.number)
    assert [each.number for each in by_number] == list(range(pool.next_number))
    with closing(make_game_env(config.env, game)) as env:
        found = []
        for each in by_number:
            env.emulator.load_state(each.state)
            found.append((env.read_variables()["player_x"], each.timesteps))
    assert found == own.found
    assert pool.highest == max(value for value, _ in found)


@pytest.mark.slow
def test_beginnings_on_a_route_are_its_states(make_config: MakeConfig, explored: Path) -> None:
    """Compare with the route played by itself."""
    section = {"choose": "backward", "goal": "reward", "backward": {"step": 3}, "size": 50}
    config = make_config("run", *settings(explored, pool=section), "env.frame_skip=4")
    train(config, command(quiet(), until=32))
    states = sorted(saved(RunDir(config.run_dir), 32).states, key=lambda each: each.timesteps)
    actions = Archive.read(explored / "archive.jsonl", 10**9).best().way.whole()
    at = list(range(len(actions) - 3, -1, -3))[::-1]
    assert [each.timesteps for each in states] == at
    assert len(at) > 2
    assert [each.place.left for each in states if each.place] == [len(actions) - t for t in at]
    explored_env = EnvConfig(frame_skip=8, max_episode_timesteps=None)
    with closing(make_game_env(explored_env, load_game(config.game))) as env:
        env.reset(seed=0, options={"start_state": "level_1"})
        for timestep, action in enumerate(actions):
            if timestep in at:
                state = states[at.index(timestep)]
                now = env.read_variables()
                assert state.reward == sum(env.reward_terms.values())
                before = env.emulator.save_state()
                env.emulator.load_state(state.state)
                assert env.read_variables() == now
                env.emulator.load_state(before)
            env.step(action)


@pytest.mark.slow
def test_backward_needs_a_success_and_room(make_config: MakeConfig, explored: Path) -> None:
    faults: dict[str, Mapping[str, object]] = {
        "no route in .* ends in a success": {"choose": "backward"},
        "env.pool.size: the best route": {
            "choose": "backward",
            "goal": "reward",
            "size": 1,
            "backward": {"step": 1},
        },
    }
    for name, (fault, section) in enumerate(faults.items()):
        with pytest.raises(UsageError, match=fault):
            train(make_config(f"run{name}", *settings(explored, pool=section)), command(quiet()))


def _whole(config: RunConfig) -> dict[str, str]:
    train(config, command(quiet()))
    return learned(RunDir(config.run_dir), 192)


@pytest.mark.slow
def test_the_number_of_workers_has_no_effect(make_config: MakeConfig, explored: Path) -> None:
    own = (*settings(explored, pool=GROWS), "env.n_envs=4", "algorithm.n_steps=8")
    both = [_whole(make_config(f"run{n}", *own, f"env.n_workers={n}")) for n in (2, 4)]
    assert both[0] == both[1]


class Beginnings(BaseCallback):
    """Counts episodes from the pool, and looks at what is remembered before each timestep."""

    def __init__(self) -> None:
        super().__init__()
        self.n_from_pool = 0
        self.n_remembering = 0

    def _on_step(self) -> bool:
        for env, info in enumerate(self.locals["infos"]):
            if self.locals["dones"][env] and info.get("pool_state") is not None:
                self.n_from_pool += 1
        return True

    def _on_rollout_end(self) -> None:
        model: Any = self.model
        buffer = model.rollout_buffer
        steps = np.arange(0, buffer.buffer_size, buffer.sequence)
        begins = buffer.episode_starts[steps] != 0
        assert not buffer.states[begins].any()
        self.n_remembering += int(buffer.states[~begins].any(axis=(-1, -2, -3)).sum())


@pytest.mark.slow
def test_an_episode_that_begins_in_a_state_of_the_pool_remembers_nothing(
    explored: Path, make_config: MakeConfig
) -> None:
    """Sequences are one timestep long, so that the memory before each timestep is stored."""
    memory = "algorithm={n_steps: 16, batch_size: 16, n_epochs: 1, memory: {size: 8, sequence: 1}}"
    own = Beginnings()
    trained_beside(make_config("run", *settings(explored), memory), own)
    assert own.n_from_pool > 5
    assert own.n_remembering > 100
