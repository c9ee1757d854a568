"""Trainings with callbacks and wrappers of a person's own: exact, announced, told apart."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from game_rl.checkpoints.checkpoint import Checkpoint
from game_rl.cli.main import main
from game_rl.errors import ConfigError, ExperimentError, LakeError, UsageError
from game_rl.events import Event, Resumed, StopConditionMet, Warned
from game_rl.events.event_log import final_evaluation, read_events
from game_rl.experiments.jobs.job_files import StretchRequest
from game_rl.experiments.jobs.member_jobs import run_stretch
from game_rl.files.run_dir import RunDir
from game_rl.playback.trained_run import evaluate_run, open_trained_run
from game_rl.system.stop_request import StopRequest
from game_rl.training.forking import plan_fork
from game_rl.training.train import resume, train
from tests.tiny_run import MakeConfig, command
from tests.training.forks import FILES, fork_of, quiet

WRAPPERS = """\
import gymnasium


class Counting(gymnasium.Wrapper):
    def __init__(self, env, scale=0.1):
        super().__init__(env)
        self.scale, self.played = scale, 0

    def step(self, action):
        observation, reward, *rest = self.env.step(action)
        self.played += 1
        return observation, reward + self.scale * (self.played % 7), *rest

    def state_dict(self):
        return {"played": self.played}

    def load_state_dict(self, state):
        self.played = state["played"]


class Forgetful(gymnasium.Wrapper):
    def reset(self, **arguments):
        self.played = 0
        return self.env.reset(**arguments)

    def step(self, action):
        self.played += 1
        return self.env.step(action)
"""
CALLBACKS = """\
from stable_baselines3.common.callbacks import BaseCallback


class Shrinking(BaseCallback):
    def __init__(self, every=3):
        super().__init__()
        self.every, self.total = every, 0.0

    def _on_step(self):
        self.total += float(self.locals["rewards"].sum())
        if self.n_calls % self.every == 0:
            next(self.model.policy.parameters()).data.mul_(1 - 1e-3 * abs(self.total % 1))
        return True

    def state_dict(self):
        return {"total": self.total}

    def load_state_dict(self, state):
        self.total = state["total"]


class Forgetful(BaseCallback):
    def _on_step(self):
        return True


class Ending(BaseCallback):
    def __init__(self, at):
        super().__init__()
        self.at = at

    def _on_step(self):
        return self.num_timesteps < self.at
"""
OWN = ("env.wrappers=[own_wrappers:Counting]", "callbacks=[own_callbacks:Shrinking]")
SAVED = (*FILES, "callbacks.json")

Own = Callable[..., RunDir]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, with two modules."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "own_wrappers.py").write_text(WRAPPERS, encoding="utf-8")
    (tmp_path / "own_callbacks.py").write_text(CALLBACKS, encoding="utf-8")
    return tmp_path


@pytest.fixture
def trained(make_config: MakeConfig) -> Own:
    """Train a run, up to a timestep if there is one."""

    def make(name: str, *overrides: str, until: int | None = None) -> RunDir:
        config = make_config(
            name, "checkpoints={every_timesteps: 32, keep_last: 20}", *(overrides or OWN)
        )
        train(config, command(quiet(), until=until))
        return RunDir(config.run_dir)

    return make


def saved(run_dir: RunDir, timesteps: int) -> dict[str, bytes]:
    path = run_dir.checkpoint(timesteps)
    found = {name: path / name for name in SAVED if (path / name).exists()}
    return {name: file.read_bytes() for name, file in found.items()}


def told_at_the_resume(run_dir: RunDir) -> tuple[str, ...]:
    (event,) = (event for event in read_events(run_dir) if isinstance(event, Resumed))
    return event.not_restored


@pytest.mark.slow
def test_a_run_that_was_stopped_and_resumed_is_the_run_that_was_not(trained: Own) -> None:
    whole, cut = trained("whole"), trained("cut", until=96)
    resume(cut.root, command(quiet()))
    for timesteps in (128, 192):
        assert saved(cut, timesteps) == saved(whole, timesteps)
    assert (cut.root / "eval.csv").read_bytes() == (whole.root / "eval.csv").read_bytes()
    assert told_at_the_resume(cut) == ()
    content = json.loads(saved(whole, 192)["callbacks.json"])["callbacks"]
    assert content[0]["n_calls"] == 96  # vec steps of two envs
    envs = Checkpoint(whole.checkpoint(192)).play().envs
    assert envs is not None
    assert [env.wrappers[0].state for env in envs] == [{"played": 96}] * 2


@pytest.mark.slow
def test_a_run_without_parts_has_no_file_for_them(trained: Own) -> None:
    run_dir = trained("run", "seed=1")
    assert "callbacks.json" not in saved(run_dir, 192)


def test_what_begins_anew_at_a_resume_is_said(trained: Own) -> None:
    run_dir = trained(
        "run",
        "env.wrappers=[own_wrappers:Forgetful]",
        "callbacks=[own_callbacks:Forgetful, own_callbacks:Shrinking]",
        until=96,
    )
    warnings = [event.text for event in read_events(run_dir) if isinstance(event, Warned)]
    assert any("own_wrappers:Forgetful, changes its attributes and has no" in w for w in warnings)
    change = "callbacks=[own_callbacks:Forgetful,own_callbacks:Shrinking,own_callbacks:Shrinking]"
    resume(run_dir.root, command(quiet()), overrides=[change])
    episodes, forgetful, new = told_at_the_resume(run_dir)
    assert "a wrapper whose attributes change needs state_dict and load_state_dict" in episodes
    assert forgetful == (
        "callbacks.0, own_callbacks:Forgetful: it has no state_dict and load_state_dict"
    )
    assert new == "callbacks.2, own_callbacks:Shrinking: the checkpoint has no state of it"
    assert final_evaluation(read_events(run_dir)) is not None


@pytest.mark.slow
def test_parts_that_a_run_gets_at_a_resume_begin_anew_and_wrappers_are_refused(
    trained: Own,
) -> None:
    run_dir = trained("run", "seed=0", until=96)
    with pytest.raises(UsageError, match=r"cannot change env\.wrappers"):
        resume(run_dir.root, command(quiet()), overrides=[OWN[0]])
    resume(run_dir.root, command(quiet()), overrides=[OWN[1]])
    assert told_at_the_resume(run_dir) == (
        "callbacks.0, own_callbacks:Shrinking: the checkpoint has no state of it",
    )


@pytest.mark.slow
def test_whose_python_runs_is_said_before_it_runs(
    make_config: MakeConfig, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    sign = folder / "it_ran"
    with (folder / "own_callbacks.py").open("a", encoding="utf-8") as file:
        file.write(f"open({str(sign)!r}, 'w').close()\n")
    config = make_config("run", *OWN)
    arguments = [str(folder / "run.yaml"), *OWN]
    assert main(["preflight", *arguments]) == 0
    assert not sign.exists()
    assert "own_callbacks:Shrinking (callbacks.0)" in " ".join(capsys.readouterr().out.split())
    before: list[bool] = []

    def listen(event: Event) -> None:
        if isinstance(event, Warned) and "which runs with your rights" in event.text:
            before.append(sign.exists())

    own = command(quiet())
    train(config, type(own)(stop=own.stop, listeners=[listen]))
    assert before == [False, False]
    assert sign.exists()
    assert main(["train", *arguments, "run_dir=other", "total_timesteps=64"]) == 0
    told = capsys.readouterr().out
    for part in ("env.wrappers.0, own_wrappers:Counting", "callbacks.0, own_callbacks:Shrinking"):
        assert told.count(f"{part}, is Python from {folder}") == 1


@pytest.mark.slow
def test_a_run_that_a_callback_ends_is_evaluated_saved_and_can_be_continued_without_it(
    trained: Own, capsys: pytest.CaptureFixture[str]
) -> None:
    run_dir = trained("run", "callbacks=[{own_callbacks:Ending: {at: 90}}]")
    reason = "callbacks.0, own_callbacks:Ending, returned False"
    (met,) = (e for e in read_events(run_dir) if isinstance(e, StopConditionMet))
    assert met.text == reason
    assert run_dir.checkpoints_newest_first()[0].name == f"{96:012d}"
    assert (run_dir.root / "eval.csv").read_text(encoding="utf-8").count("\n96,") == 1
    assert final_evaluation(read_events(run_dir)) is not None
    assert main(["train", "--resume", str(run_dir.root)]) == 0
    told = capsys.readouterr().out
    assert reason in told
    assert "--set callbacks=[]" in told
    assert main(["train", "--resume", str(run_dir.root), "--set", "callbacks=[]", "-q"]) == 0
    assert run_dir.checkpoints_newest_first()[0].name == f"{192:012d}"


@pytest.mark.parametrize(
    ("override", "told"),
    [
        ("callbacks=[{own_callbacks:Ending: {ta: 3}}]", "callbacks.0: missing a required"),
        ("callbacks=[own_wrappers:Counting]", "callbacks.0: own_wrappers:Counting is not"),
        ("env.wrappers=[own_callbacks:Ending]", "env.wrappers.0: own_callbacks:Ending is not"),
        ("env.wrappers=[{own_wrappers:Counting: {scal: 3}}]", "did you mean scale?"),
    ],
)
def test_a_mistake_is_reported_with_its_place_before_a_folder_is_made(
    make_config: MakeConfig,
    folder: Path,
    capsys: pytest.CaptureFixture[str],
    override: str,
    told: str,
) -> None:
    make_config("run")
    for action in ("train", "tune"):
        assert main([action, str(folder / "run.yaml"), override]) == 2
        error = capsys.readouterr().err
        assert f"--set {override}" in error
        assert told in error
        assert "Traceback" not in error
    assert not (folder / "run").exists()


def test_the_folder_with_the_module_is_asked_for_where_a_run_is_played(
    trained: Own, folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run_dir = trained("run", until=64)
    (elsewhere := folder / "elsewhere").mkdir()
    monkeypatch.chdir(elsewhere)
    for arguments in (["evaluate", "--episodes", "1"], ["train", "--resume"]):
        assert main([*arguments[:1], *arguments[1:], str(run_dir.root)]) == 2
        assert f"neither {elsewhere / 'own_wrappers.py'} nor" in capsys.readouterr().err


def test_evaluations_and_clips_play_with_the_wrappers(trained: Own, folder: Path) -> None:
    run_dir = trained("run", "env.wrappers=[{own_wrappers:Counting: {scale: 100}}]", until=64)
    run = open_trained_run(run_dir.root, "latest")
    first, again = (evaluate_run(run, episodes=2, seed=1) for _ in range(2))
    assert first.rewards == again.rewards
    assert first.mean_reward > 1_000
    output = folder / "clip.gif"
    assert main(["record", str(run_dir.root), "--checkpoint", "latest", "--episodes", "1",
                 "--output", str(output)]) == 0  # fmt: skip
    assert output.exists()


def test_a_fork_with_other_wrappers_begins_its_episodes_and_evaluations_anew(trained: Own) -> None:
    parent = trained("parent", until=96)
    same = plan_fork(fork_of(parent, 96, "same"))
    assert (same.new.emulators, same.keeps_best, same.told_anew()) == (False, True, ())
    other = plan_fork(fork_of(parent, 96, "other", env__wrappers=()))
    assert (other.new.emulators, other.new.replay, other.keeps_best) == (True, True, False)
    new = plan_fork(fork_of(parent, 96, "new", fork__counters="new"))
    assert "the callbacks of your own (fork.counters is new)" in new.told_anew()


@pytest.mark.slow
def test_a_fork_that_changes_nothing_takes_over_the_state_of_the_parts(trained: Own) -> None:
    parent = trained("parent")
    fork = fork_of(parent, 96, "fork")
    train(fork, command(quiet()))
    assert saved(RunDir(fork.run_dir), 192) == saved(parent, 192)


@pytest.mark.slow
def test_a_lake_of_other_wrappers_is_refused(trained: Own) -> None:
    pqn = "algorithm={name: pqn, n_steps: 16, batch_size: 16}"
    lake = trained("writer", pqn, "lake={}", OWN[0], until=64).lake
    dqn = (
        "algorithm={name: dqn, replay: {capacity: 60}, learning_starts: 40, batch_size: 16, "
        f"learn_from: {{lakes: [{lake}]}}}}"
    )
    with pytest.raises(LakeError, match=r"env\.wrappers: \['own_wrappers:Counting'\] there, \[\]"):
        trained("learner", dqn)
    assert trained("alike", dqn, OWN[0], until=64).exists()


def test_an_error_in_the_middle_of_a_run_is_reported_by_name_and_saves_nothing_wrong(
    trained: Own, folder: Path
) -> None:
    fails = "1 / (90 // self.num_timesteps)"
    code = CALLBACKS.replace("self.num_timesteps < self.at", fails)
    (folder / "failing.py").write_text(code, encoding="utf-8")
    with pytest.raises(ConfigError, match=r"callbacks\.0: failing:Ending failed in _on_step with"):
        trained("run", "callbacks=[{failing:Ending: {at: 90}}]")
    assert RunDir(folder / "run").checkpoints_newest_first()[0].name == f"{64:012d}"


@pytest.mark.slow
def test_an_upload_takes_the_modules_along(trained: Own, folder: Path) -> None:
    (folder / "store").mkdir()
    run_dir = trained("run", *OWN, f"upload.to=file://{folder}/store", until=64)
    address = f"file://{folder}/store/runs/{run_dir.identity().id}"
    assert main(["remote", "fetch", address, str(folder / "fetched")]) == 0
    parts = folder / "fetched" / "parts"
    assert {file.name for file in parts.iterdir()} == {"own_wrappers.py", "own_callbacks.py"}
    assert (parts / "own_wrappers.py").read_text(encoding="utf-8") == WRAPPERS


@pytest.mark.slow
def test_a_callback_that_ends_a_member_is_an_error(trained: Own, folder: Path) -> None:
    run_dir = trained("run", "callbacks=[{own_callbacks:Ending: {at: 40}}]", until=32)
    request = StretchRequest(
        root=folder, run=run_dir.root, until=128, seed=1, result=folder / "result.json"
    )
    with pytest.raises(ExperimentError, match=r"own_callbacks:Ending, returned False; members"):
        run_stretch(request, StopRequest())
