import csv
import statistics
from collections.abc import Callable
from math import sqrt
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from stable_baselines3 import PPO
from stable_baselines3.common.callbacks import BaseCallback, CallbackList, EvalCallback
from stable_baselines3.common.logger import KVWriter
from stable_baselines3.common.vec_env import DummyVecEnv, VecEnv, VecMonitor

from game_rl.callbacks.checkpoint_callback import CheckpointCallback
from game_rl.callbacks.evaluation import Evaluation, EvaluationGames, better_of, evaluate
from game_rl.callbacks.evaluation_callback import EvaluationCallback
from game_rl.checkpoints.checkpoint import Checkpoint
from game_rl.checkpoints.checkpoint_state import Best
from game_rl.errors import Interrupted
from game_rl.events import Evaluated, Event
from game_rl.events.event_log import EventLog
from game_rl.files.run_dir import RunDir
from game_rl.system.stop_request import StopRequest
from tests.callbacks.conftest import make_checkpoints, tiny_vec_env
from tests.tiny_env import EPISODE_LENGTH, TinyEnv

MakeModel = Callable[..., PPO]
LIKELIEST, DRAWN = (True,), (False,)
BOTH = (True, False)


def make_evaluation(
    run_dir: RunDir,
    checkpoints: CheckpointCallback,
    *,
    every: int,
    env: VecEnv | None = None,
    stop: StopRequest | None = None,
    ways: tuple[bool, ...] = LIKELIEST,
    episodes: int = 3,
    new_best: BaseCallback | None = None,
    after: BaseCallback | None = None,
    told: list[Event] | None = None,
) -> EvaluationCallback:
    return EvaluationCallback(
        EvaluationGames(
            vec_env=env or tiny_vec_env(), episodes=episodes, ways=ways, seed=0, stop=stop
        ),
        checkpoints,
        run_dir,
        EventLog(listeners=[] if told is None else [told.append]),
        every_timesteps=every,
        callback_on_new_best=new_best,
        callback_after_eval=after,
    )


def callbacks(run_dir: RunDir, env: VecEnv, every: int) -> tuple[CallbackList, CheckpointCallback]:
    checkpoints = make_checkpoints(run_dir, every=10_000, keep_last=1)
    evaluation = make_evaluation(run_dir, checkpoints, every=every, env=env)
    return CallbackList([evaluation, checkpoints]), checkpoints


def rows(run_dir: RunDir) -> list[dict[str, str]]:
    with run_dir.evaluations.open(encoding="utf-8") as file:
        return list(csv.DictReader(file))


def test_evaluates_after_each_multiple_and_at_the_end(
    make_model: MakeModel, run_dir: RunDir
) -> None:
    both, _ = callbacks(run_dir, tiny_vec_env(), every=20)
    make_model().learn(48, callback=both)
    assert [int(row["timesteps"]) for row in rows(run_dir)] == [24, 40, 48]


def test_best_model_is_the_one_with_the_highest_mean_reward(
    make_model: MakeModel, run_dir: RunDir
) -> None:
    both, checkpoints = callbacks(run_dir, tiny_vec_env(), every=8)
    make_model().learn(48, callback=both)
    history = [float(row["mean_reward"]) for row in rows(run_dir)]
    running_best = [
        all(history[i] > earlier for earlier in history[:i]) for i in range(len(history))
    ]
    assert [row["is_best"] == "True" for row in rows(run_dir)] == running_best
    best_at = 8 * (history.index(max(history)) + 1)
    assert checkpoints.best is not None
    assert checkpoints.best.timesteps == best_at
    assert checkpoints.best.mean_reward == pytest.approx(max(history), abs=1e-4)  # rounded there
    saved = Checkpoint(run_dir.checkpoint(best_at)).state
    assert saved.best == checkpoints.best


def test_a_better_model_from_before_a_resume_is_kept(
    make_model: MakeModel, run_dir: RunDir
) -> None:
    both, checkpoints = callbacks(run_dir, tiny_vec_env(), every=8)
    best = Best(timesteps=8, mean_reward=EPISODE_LENGTH + 1.0)  # more than the env can give
    checkpoints.best = best
    make_model().learn(16, callback=both)
    assert Checkpoint(run_dir.checkpoint(16)).state.best == best
    assert {row["is_best"] for row in rows(run_dir)} == {"False"}


def test_an_interrupted_training_is_not_evaluated_again(
    make_model: MakeModel, run_dir: RunDir
) -> None:
    class StopAtOnce(BaseCallback):
        def _on_step(self) -> bool:
            return False

    both, _ = callbacks(run_dir, tiny_vec_env(), every=8)
    make_model().learn(48, callback=CallbackList([both, StopAtOnce()]))
    assert not run_dir.evaluations.exists()


class BesideSb3(BaseCallback):
    """Lets SB3's own EvalCallback play the same games whenever ours has."""

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self.sb3 = EvalCallback(
            tiny_vec_env(), n_eval_episodes=3, eval_freq=1, log_path=str(folder), verbose=0
        )

    def _init_callback(self) -> None:
        self.sb3.init_callback(self.model)

    def _on_step(self) -> bool:
        self.sb3.eval_env.seed(0)
        return self.sb3.on_step()


def test_attributes_and_file_are_those_of_sb3s_own_callback(
    make_model: MakeModel, run_dir: RunDir, tmp_path: Path
) -> None:
    checkpoints, beside = make_checkpoints(run_dir, every=10_000), BesideSb3(tmp_path)
    ours = make_evaluation(run_dir, checkpoints, every=8, after=beside)
    make_model().learn(48, callback=CallbackList([ours, checkpoints]))
    sb3 = beside.sb3
    assert isinstance(ours, EvalCallback)
    for name in (
        "best_mean_reward", "last_mean_reward", "evaluations_results", "evaluations_timesteps",
        "evaluations_length", "evaluations_successes", "n_eval_episodes", "deterministic",
    ):  # fmt: skip
        assert getattr(ours, name) == getattr(sb3, name)
    assert len(ours.evaluations_timesteps) == 6
    assert run_dir.evaluation_episodes.read_bytes() == (tmp_path / "evaluations.npz").read_bytes()


def test_the_curve_that_rl_zoo3_plots_is_that_of_the_table(
    make_model: MakeModel, run_dir: RunDir
) -> None:
    both, _ = callbacks(run_dir, tiny_vec_env(), every=8)
    make_model().learn(48, callback=both)
    with np.load(run_dir.evaluation_episodes) as found:
        assert sorted(found) == ["ep_lengths", "results", "successes", "timesteps"]
        means, rates = found["results"].mean(axis=1), found["successes"].mean(axis=1)
        timesteps, lengths = found["timesteps"], found["ep_lengths"].mean(axis=1)
    table = rows(run_dir)
    assert timesteps.tolist() == [int(row["timesteps"]) for row in table]
    assert means == pytest.approx([float(row["mean_reward"]) for row in table], abs=1e-4)
    assert rates == pytest.approx([float(row["success_rate"]) for row in table])
    assert lengths == pytest.approx([float(row["mean_length"]) for row in table])


class Counting(BaseCallback):
    """Counts its calls, and ends the training at the last of so many."""

    def __init__(self, most: int = 1000) -> None:
        super().__init__()
        self._most = most
        self.at: list[int] = []

    def _on_step(self) -> bool:
        self.at.append(self.num_timesteps)
        return len(self.at) < self._most


def test_sb3s_callbacks_hear_of_each_evaluation_and_of_each_new_best(
    make_model: MakeModel, run_dir: RunDir
) -> None:
    new_best, after = Counting(), Counting()
    checkpoints = make_checkpoints(run_dir, every=10_000)
    ours = make_evaluation(run_dir, checkpoints, every=8, new_best=new_best, after=after)
    make_model().learn(48, callback=CallbackList([ours, checkpoints]))
    table = rows(run_dir)
    assert after.at == [int(row["timesteps"]) for row in table]
    assert new_best.at == [int(row["timesteps"]) for row in table if row["is_best"] == "True"]
    assert new_best.parent is ours


@pytest.mark.parametrize("which", ["new_best", "after"])
def test_a_callback_that_returns_false_ends_the_training_at_its_boundary(
    make_model: MakeModel, run_dir: RunDir, which: str
) -> None:
    checkpoints = make_checkpoints(run_dir, every=10_000)
    stopping: dict[str, BaseCallback] = {which: Counting(most=1)}
    ours = make_evaluation(
        run_dir,
        checkpoints,
        every=16,
        new_best=stopping.get("new_best"),
        after=stopping.get("after"),
    )
    make_model().learn(48, callback=CallbackList([ours, checkpoints]))
    assert [row["timesteps"] for row in rows(run_dir)] == ["16"]
    assert checkpoints.boundary_timesteps == 16


def test_an_evaluation_of_more_episodes_begins_the_file_anew(
    make_model: MakeModel, run_dir: RunDir
) -> None:
    model, checkpoints = make_model(), make_checkpoints(run_dir, every=10_000)
    first = make_evaluation(run_dir, checkpoints, every=8)
    model.learn(16, callback=CallbackList([first, checkpoints]))
    second = make_evaluation(run_dir, checkpoints, every=8, episodes=4)
    second.continue_from_files()
    assert second.evaluations_timesteps == [8, 16]
    model.learn(16, callback=CallbackList([second, checkpoints]), reset_num_timesteps=False)
    with np.load(run_dir.evaluation_episodes) as found:
        assert found["timesteps"].tolist() == [24, 32]
        assert found["results"].shape == (2, 4)
    assert [row["episodes"] for row in rows(run_dir)] == ["3", "3", "4", "4"]


def with_preference(model: PPO, logits: tuple[float, float]) -> PPO:
    """A policy that, whatever it sees, gives the env's two actions these logits."""
    with torch.no_grad():
        model.policy.action_net.weight.zero_()
        model.policy.action_net.bias.copy_(torch.tensor(logits))
    return model


STUCK = (0.2, 0.0)  # the likeliest action is never rewarded, the other one is drawn in 45 of 100
STEADY = (0.0, 0.2)


@pytest.mark.parametrize(("logits", "drawing_is_better"), [(STUCK, True), (STEADY, False)])
def test_auto_plays_both_ways_and_keeps_the_better_one(
    make_model: MakeModel, run_dir: RunDir, logits: tuple[float, float], drawing_is_better: bool
) -> None:
    told: list[Event] = []
    checkpoints = make_checkpoints(run_dir, every=10_000)
    ours = make_evaluation(run_dir, checkpoints, every=8, ways=BOTH, episodes=20, told=told)
    model = with_preference(make_model(), logits)
    model.learn(8, callback=CallbackList([ours, checkpoints]))
    likeliest, drawn = rows(run_dir)
    assert (likeliest["deterministic"], drawn["deterministic"]) == ("True", "False")
    assert float(likeliest["mean_reward"]) == (0 if drawing_is_better else EPISODE_LENGTH)
    assert 0 < float(drawn["mean_reward"]) < EPISODE_LENGTH
    better, worse = (drawn, likeliest) if drawing_is_better else (likeliest, drawn)
    assert (better["is_best"], worse["is_best"]) == ("True", "False")
    mean = pytest.approx(float(better["mean_reward"]), abs=1e-4)
    assert (ours.last_mean_reward, ours.best_mean_reward) == (mean, mean)
    assert np.mean(ours.evaluations_results) == mean
    assert ours.deterministic is not drawing_is_better
    best = Checkpoint(run_dir.checkpoint(8)).state.best
    assert best is not None
    assert (best.mean_reward, best.deterministic) == (mean, not drawing_is_better)
    evaluated = [event for event in told if isinstance(event, Evaluated)]
    assert [e.deterministic for e in evaluated] == [True, False]
    assert [e.is_best for e in evaluated] == [not drawing_is_better, drawing_is_better]


class Curves(KVWriter):
    """Keeps what is written."""

    def __init__(self) -> None:
        self.values: dict[str, object] = {}

    def write(self, key_values: dict[str, object], *_: object) -> None:
        self.values |= key_values

    def close(self) -> None: ...


@pytest.mark.parametrize("ways", [BOTH, LIKELIEST, DRAWN])
def test_curves_have_the_better_way_and_beside_it_each_of_two(
    make_model: MakeModel, run_dir: RunDir, ways: tuple[bool, ...]
) -> None:
    checkpoints, curves = make_checkpoints(run_dir, every=10_000), Curves()
    ours = make_evaluation(run_dir, checkpoints, every=8, ways=ways, episodes=20)
    model = with_preference(make_model(), STUCK)
    model.logger.output_formats.append(curves)
    model.learn(8, callback=CallbackList([ours, checkpoints]))
    means = {row["deterministic"]: float(row["mean_reward"]) for row in rows(run_dir)}
    found = {key: value for key, value in curves.values.items() if key.startswith("eval/mean_rew")}
    expected = {"eval/mean_reward": max(means.values())}
    if len(ways) == 2:
        expected["eval/mean_reward_deterministic"] = means["True"]
        expected["eval/mean_reward_drawn"] = means["False"]
    assert found == pytest.approx(expected, abs=1e-4)


def test_drawn_evaluations_change_nothing_of_the_training(
    make_model: MakeModel, run_dir: RunDir
) -> None:
    weights = []
    for every in (8, 48):
        checkpoints = make_checkpoints(RunDir(run_dir.root / str(every)), every=10_000)
        (run_dir.root / str(every)).mkdir(parents=True)
        ours = make_evaluation(
            RunDir(run_dir.root / str(every)), checkpoints, every=every, ways=BOTH
        )
        model = make_model()
        model.learn(48, callback=CallbackList([ours, checkpoints]))
        weights.append([tensor.clone() for tensor in model.policy.parameters()])
    assert all(torch.equal(one, other) for one, other in zip(*weights, strict=True))


class StopsAtSecondSeed(VecMonitor):
    """Envs that are seeded once for each way; the run is asked to stop at the second."""

    def __init__(self, stop: StopRequest) -> None:
        super().__init__(DummyVecEnv([TinyEnv] * 2))
        self._stop = stop
        self._n_seeds = 0

    def seed(self, seed: int | None = None) -> list[int | None]:
        self._n_seeds += 1
        if self._n_seeds == 2:
            self._stop.ask(Interrupted("stopped by SIGTERM"))
        return list(self.venv.seed(seed))


def test_a_stop_between_the_two_ways_leaves_nothing_of_the_first(
    make_model: MakeModel, run_dir: RunDir
) -> None:
    checkpoints, stop = make_checkpoints(run_dir, every=10_000), StopRequest()
    ours = make_evaluation(
        run_dir, checkpoints, every=8, env=StopsAtSecondSeed(stop), stop=stop, ways=BOTH
    )
    make_model().learn(8, callback=CallbackList([ours, checkpoints]))
    assert checkpoints.evaluation_due
    assert (checkpoints.best, ours.evaluations_results) == (None, [])
    assert ours.last_mean_reward == -np.inf
    assert not run_dir.evaluations.exists()
    assert not run_dir.evaluation_episodes.exists()


class Scripted:
    """Plays a fixed list of actions round and round, whatever it sees."""

    def __init__(self, actions: list[int]) -> None:
        self._actions = actions
        self._calls = 0

    def predict(
        self,
        observation: np.ndarray | dict[str, np.ndarray],
        state: object = None,  # noqa: ARG002
        episode_start: object = None,  # noqa: ARG002
        deterministic: bool = False,  # noqa: ARG002
    ) -> tuple[np.ndarray, None]:
        action = self._actions[self._calls % len(self._actions)]
        self._calls += 1
        return np.full(len(observation), action), None


class Drawing:
    """Draws each action from torch's global generator, unless it is asked not to."""

    def predict(
        self,
        observation: np.ndarray | dict[str, np.ndarray],
        state: object = None,  # noqa: ARG002
        episode_start: object = None,  # noqa: ARG002
        deterministic: bool = False,
    ) -> tuple[np.ndarray, None]:
        if deterministic:
            return np.zeros(len(observation), np.int64), None
        return torch.randint(2, (len(observation),)).numpy(), None


@pytest.mark.parametrize("n_envs", [1, 2, 3])
def test_evaluation_agrees_with_a_plain_loop_over_episodes(n_envs: int) -> None:
    actions = [0, 1, 1, 0, 1, 1, 0]
    found = evaluate(
        Scripted(actions), tiny_vec_env(n_envs), episodes=6, deterministic=True, seed=0
    )

    rewards, successes, counts = [], [], [0, 0]
    script = Scripted(actions)
    for _ in range(6 // n_envs):
        env = TinyEnv()
        env.reset(seed=0)
        episode = [script.predict(np.zeros(1))[0][0] for _ in range(EPISODE_LENGTH)]
        results = [env.step(action) for action in episode]
        for action in episode:
            counts[action] += n_envs
        rewards += [sum(result[1] for result in results)] * n_envs
        successes += [results[-1][4]["is_success"]] * n_envs
    assert found.mean_reward == pytest.approx(np.mean(rewards))
    assert found.std_reward == pytest.approx(np.std(rewards))
    assert found.success_rate == pytest.approx(np.mean(successes))
    assert (found.mean_length, found.episodes) == (EPISODE_LENGTH, 6)
    assert found.action_counts == tuple(counts)
    assert "np." not in repr(found)  # plain numbers, which print as such


def test_the_same_seed_draws_the_same_actions_and_another_one_others() -> None:
    def played(seed: int) -> list[Evaluation]:
        torch.rand(3)  # wherever the training is
        return [
            evaluate(Drawing(), tiny_vec_env(), episodes=12, deterministic=way, seed=seed)
            for way in (False, True, False)
        ]

    first, likeliest, again = played(5)
    assert first == again
    assert first == played(5)[0]
    assert first != played(6)[0]
    assert (likeliest.mean_reward, likeliest.deterministic) == (0, True)


def test_an_evaluation_draws_none_of_the_trainings_random_numbers() -> None:
    torch.manual_seed(1)
    expected = torch.rand(3)
    torch.manual_seed(1)
    evaluate(Drawing(), tiny_vec_env(), episodes=3, deterministic=False, seed=0)
    assert torch.equal(torch.rand(3), expected)


def an_evaluation(rewards: list[float], *, deterministic: bool) -> Evaluation:
    return Evaluation(
        deterministic=deterministic,
        rewards=tuple(rewards),
        lengths=(1,) * len(rewards),
        successes=(),
        seconds=0.0,
    )


REWARDS = st.lists(st.integers(-9, 9).map(float), min_size=2, max_size=30)


@given(REWARDS, REWARDS)
def test_drawing_wins_only_by_more_than_one_standard_error(
    likeliest: list[float], drawn: list[float]
) -> None:
    played = [
        an_evaluation(likeliest, deterministic=True),
        an_evaluation(drawn, deterministic=False),
    ]
    gain = statistics.fmean(drawn) - statistics.fmean(likeliest)
    error = sqrt(
        statistics.variance(likeliest) / len(likeliest) + statistics.variance(drawn) / len(drawn)
    )
    if gain != pytest.approx(error, abs=1e-9):
        assert better_of(played).deterministic == (gain <= error)


def test_one_episode_says_nothing_of_how_much_they_vary() -> None:
    played = [an_evaluation([0.0], deterministic=True), an_evaluation([9.0], deterministic=False)]
    assert better_of(played).deterministic


def test_the_only_way_is_the_better_one() -> None:
    drawn = an_evaluation([0.0, 1.0], deterministic=False)
    assert better_of([drawn]) is drawn
