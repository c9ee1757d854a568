"""Runs of DQN that learn from a run of PQN, as small as they can be."""

import json
import shutil
from collections.abc import Callable
from io import StringIO
from pathlib import Path

import pytest
import torch
from rich.console import Console

from game_rl.callbacks.evaluation import EvaluationInterrupted
from game_rl.checkpoints.checkpoint import Checkpoint
from game_rl.checkpoints.checkpoint_files import read_manifest, write_files
from game_rl.checkpoints.model_state import dump_tensors, parse_tensors
from game_rl.cli.main import main
from game_rl.cli.run_console import RunConsole
from game_rl.config.loader import load_config
from game_rl.config.schema import RunConfig
from game_rl.errors import Interrupted, UsageError
from game_rl.events import Event, TeacherReady, Validated
from game_rl.events.event_log import EventLog, read_events
from game_rl.events.lineage import read_lineage
from game_rl.files.run_dir import RunDir
from game_rl.games.definition import load_game
from game_rl.playback.checkpoint_survey import survey
from game_rl.playback.teacher_copy import has_teacher_copy, read_validation
from game_rl.playback.trained_run import open_trained_run
from game_rl.system.stop_request import StopRequest
from game_rl.training.extensions.teacher_extension import (
    TeacherExtension,
    check_teacher,
    describe_teacher,
)
from game_rl.training.forking import find_source, forked_config, make_fork, plan_fork
from game_rl.training.train import evaluate_best, resume, train
from tests.tiny_run import SMALL_WINDOW, TINY, TINY_GAME, command

DUEL = Path(__file__).parents[3] / "game_rl" / "games" / "duel"
PQN = "algorithm={name: pqn, n_steps: 16, batch_size: 16}"
Make = Callable[..., RunConfig]


def quiet() -> Console:
    return Console(file=StringIO(), width=300)


def easy_game(folder: Path) -> Path:
    """`duel`, in which it is a success not to have lost when the episode is cut off."""
    folder.mkdir()
    for path in DUEL.iterdir():
        if path.is_file():
            shutil.copy(path, folder)
    file = folder / "game.yaml"
    text = file.read_text(encoding="utf-8").replace(
        "success: {variable: fight_result, equals: 1}",
        "success: {variable: fight_result, equals: 0}",
    )
    file.write_text(f"{text}\n{SMALL_WINDOW}\n", encoding="utf-8")
    return file


def maker(folder: Path, game: Path) -> Make:
    def make(name: str, *overrides: str) -> RunConfig:
        path = folder / f"{name}.yaml"
        path.write_text(TINY.format(run_dir=folder / name), encoding="utf-8")
        return load_config(path, (f"game={game}", "recording.episodes=0", *overrides))

    return make


@pytest.fixture(scope="module")
def taught(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A game and a run of PQN on it, which nobody changes."""
    folder = tmp_path_factory.mktemp("taught")
    game = easy_game(folder / "game")
    config = maker(folder, game)("pqn", PQN, "total_timesteps=64")
    train(config, command(quiet()))
    return game, config.run_dir


@pytest.fixture
def make(taught: tuple[Path, Path], tmp_path: Path) -> Make:
    return maker(tmp_path, taught[0])


def student(run: Path | str, more: str = "") -> str:
    return (
        "algorithm={name: dqn, replay: {capacity: 150}, learning_starts: 40, "
        f"teacher: {{run: {run}, keep_if_better: false{more}}}}}"
    )


def policies(config: RunConfig, *timesteps: int) -> list[dict[str, torch.Tensor]]:
    run_dir = RunDir(config.run_dir)
    return [dict(Checkpoint(run_dir.checkpoint(t)).policy()) for t in timesteps]


def is_same(one: dict[str, torch.Tensor], other: dict[str, torch.Tensor]) -> bool:
    return one.keys() == other.keys() and all(torch.equal(one[key], other[key]) for key in one)


@pytest.mark.slow
def test_breaks_change_nothing_and_the_teachers_own_folder_may_go(
    taught: tuple[Path, Path], make: Make, tmp_path: Path
) -> None:
    copy = tmp_path / "moved_pqn"
    shutil.copytree(taught[1], copy)
    keeps = "checkpoints.save_replay_buffer=true"
    more = ["evaluation.every_timesteps=96", "checkpoints.every_timesteps=32", keeps]
    straight = make("straight", student(copy), *more)
    train(straight, command(quiet()))
    broken = make("broken", student(copy), *more)
    train(broken, command(quiet(), until=60))
    shutil.rmtree(copy)
    for until in (100, 130, 192):  # the evaluation at 96 has ended the teacher's weight
        resume(broken.run_dir, command(quiet(), until=until))
    assert is_same(*policies(straight, 192), *policies(broken, 192))
    play = json.loads(
        (RunDir(broken.run_dir).checkpoint(192) / "play.json").read_text(encoding="utf-8")
    )
    assert play["algorithm"]["teacher"]["evaluations"] == [1.0, 1.0]
    alone = make("alone", student(taught[1], ", until: 1"), *more)
    train(alone, command(quiet()))
    assert not is_same(*policies(straight, 192), *policies(alone, 192))


@pytest.mark.slow
def test_a_fork_keeps_its_parents_teacher_whose_own_folder_may_go(
    taught: tuple[Path, Path], make: Make, tmp_path: Path
) -> None:
    copy = tmp_path / "moved_pqn"
    shutil.copytree(taught[1], copy)
    parent = make("parent", student(copy), "checkpoints.save_replay_buffer=true")
    train(parent, command(quiet()))
    shutil.rmtree(copy)
    source = find_source(parent.run_dir, 64)
    fork = forked_config(source, tmp_path / "fork", {("algorithm", "teacher", "weight"): 3.0})
    train(fork, command(quiet()))
    assert is_same(*policies(parent, 192), *policies(fork, 192))
    theirs, ours = (RunDir(config.run_dir) for config in (parent, fork))
    records = [run_dir.teacher / "teacher.json" for run_dir in (theirs, ours)]
    assert records[0].read_bytes() == records[1].read_bytes()
    (of_parent,) = read_lineage(theirs).sources
    assert [each.kind for each in read_lineage(ours).sources] == ["fork", "teacher"]
    assert read_lineage(ours).sources[1] == of_parent


@pytest.mark.slow
def test_a_fork_that_is_judged_otherwise_measures_its_teacher_anew(
    taught: tuple[Path, Path], make: Make, tmp_path: Path
) -> None:
    parent = make("parent", student(taught[1]))
    train(parent, command(quiet(), until=64))
    for seed in (0, 1):
        plan = plan_fork(
            forked_config(find_source(parent.run_dir, 64), tmp_path / f"{seed}", {("seed",): seed})
        )
        make_fork(plan)
        assert has_teacher_copy(RunDir(plan.config.run_dir)) == (seed == parent.seed)


def test_the_account_names_the_teacher_and_the_run_keeps_it(
    taught: tuple[Path, Path], make: Make
) -> None:
    config = make("run", student(taught[1]))
    train(config, command(quiet(), until=32))
    run_dir, theirs = RunDir(config.run_dir), open_trained_run(taught[1], "best")
    (event,) = (e for e in read_events(run_dir) if isinstance(e, TeacherReady))
    assert (event.path, event.policy_timesteps) == (str(taught[1]), theirs.state.num_timesteps)
    assert event.run == RunDir(taught[1]).identity().id
    assert event.success_rate == 1.0
    assert event.temperature > 0
    (source,) = read_lineage(run_dir).sources
    assert (source.kind, source.run, source.path) == ("teacher", event.run, event.path)
    assert (source.timesteps, source.sha256) == (event.policy_timesteps, event.sha256)
    kept = Checkpoint(run_dir.teacher / "checkpoint")
    assert is_same(dict(kept.policy()), dict(theirs.checkpoint.policy()))
    assert read_manifest(kept.path).files.keys() == {"state.json", "policy.safetensors"}


def test_a_timestep_names_the_checkpoint(taught: tuple[Path, Path], make: Make) -> None:
    check_teacher(make("run", student(f"{taught[1]}@64")), load_game(str(taught[0])))
    assert main(["train", "--config", str(make_file(make, f"{taught[1]}@65"))]) == 2


def make_file(make: Make, run: str) -> Path:
    config = make("wrong", student(run))
    path = config.run_dir.with_suffix(".yaml")
    path.write_text(path.read_text(encoding="utf-8") + "\n", encoding="utf-8")
    text = path.read_text(encoding="utf-8").replace(str(TINY_GAME), config.game)
    lines = [line for line in text.splitlines() if not line.startswith("algorithm:")]
    path.write_text("\n".join([*lines, student(run).replace("=", ": ", 1), ""]), encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("override", "told"),
    [
        ("env.frame_stack=3", "env.frame_stack is 4 there and 3 here"),
        ("env.frame_skip=4", "env.frame_skip is 8 there and 4 here"),
        ("env.observation.colour=rgb", "env.observation.colour is grey there and rgb here"),
        ("env.observation.size=full", "env.observation.size is half there and full here"),
        ("game=seasons", "the ROM's sha256 is"),
    ],
)
def test_a_teacher_of_another_task_is_refused(
    override: str, told: str, taught: tuple[Path, Path], make: Make
) -> None:
    more = [override, "env.start_states=null"]
    config = make("run", student(taught[1]), *more)
    with pytest.raises(UsageError, match="learned another task") as error:
        check_teacher(config, load_game(config.game))
    assert told in str(error.value)


def test_a_teacher_with_other_actions_is_refused(
    taught: tuple[Path, Path], make: Make, tmp_path: Path
) -> None:
    file = easy_game(tmp_path / "other")
    text = file.read_text(encoding="utf-8")
    assert "  kick: [b]" in text
    file.write_text(text.replace("  kick: [b]", "  kick: [a, b]"), encoding="utf-8")
    with pytest.raises(UsageError, match=r"actions of game.yaml is .* there and .* here"):
        check_teacher(make("run", student(taught[1]), f"game={file}"), load_game(str(file)))


def test_a_policy_of_ppo_cannot_teach(taught: tuple[Path, Path], make: Make) -> None:
    ppo = make("ppo")
    train(ppo, command(quiet(), until=32))
    with pytest.raises(UsageError, match="is a run of ppo, which has no values of actions"):
        check_teacher(make("run", student(ppo.run_dir)), load_game(str(taught[0])))


def test_parts_that_no_observation_has_do_not_make_another_task(
    taught: tuple[Path, Path], make: Make, tmp_path: Path
) -> None:
    folder = tmp_path / "with_parts"
    shutil.copytree(taught[0].parent, folder)
    text = (folder / "game.yaml").read_text(encoding="utf-8")
    more = text.replace("parts:\n", "parts:\n  recent: {actions: 2}\n")
    (folder / "game.yaml").write_text(more, encoding="utf-8")
    config, game = make("run", student(taught[1])), load_game(str(folder / "game.yaml"))
    check_teacher(config, game)
    (folder / "game.yaml").write_text(more.replace("idle: []", "idle: [select]"), encoding="utf-8")
    with pytest.raises(UsageError, match=r"actions of game\.yaml is"):
        check_teacher(config, load_game(str(folder / "game.yaml")))


def test_a_preflight_opens_the_teacher(
    taught: tuple[Path, Path], make: Make, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def preflight(run: Path | str, *more: str) -> int:
        return main(["preflight", "--config", str(make_file(make, str(run))), *more])

    assert preflight(taught[1]) == 0
    line = next(x for x in capsys.readouterr().out.splitlines() if x.startswith("teacher"))
    assert f"{taught[1]}, timestep" in line
    assert "(pqn, " in line
    assert preflight(taught[1], "--json") == 0
    assert str(taught[1]) in json.loads(capsys.readouterr().out)["teacher"]
    assert preflight(tmp_path / "nobody") == 2
    assert "is not a run directory" in capsys.readouterr().err
    assert preflight(taught[1], "--set", "env.frame_stack=3") == 2
    assert "has learned another task: env.frame_stack is 4 there" in capsys.readouterr().err


@pytest.mark.slow
def test_a_run_that_has_begun_is_preflighted_with_its_own_copy_of_the_teacher(
    taught: tuple[Path, Path], make: Make, tmp_path: Path
) -> None:
    shutil.copytree(taught[1], tmp_path / "moved_pqn")
    config = make("run", student(tmp_path / "moved_pqn"))
    train(config, command(quiet(), until=32))
    shutil.rmtree(tmp_path / "moved_pqn")
    line = describe_teacher(config, load_game(config.game))
    assert line is not None
    assert line.startswith(f"{config.run_dir / 'teacher'}, the run's copy of")
    assert describe_teacher(make("other"), load_game(config.game)) is None


@pytest.mark.slow
def test_a_run_that_goes_on_keeps_its_teacher(taught: tuple[Path, Path], make: Make) -> None:
    config = make("run", student(taught[1]))
    train(config, command(quiet(), until=32))
    with pytest.raises(UsageError, match="one teacher from its beginning on"):
        resume(config.run_dir, command(quiet()), overrides=["algorithm.teacher=null"])
    resume(config.run_dir, command(quiet(), until=64), overrides=["algorithm.teacher.until=40"])


LEFT, RIGHT = 1, 2
SHORT = ["env.max_episode_timesteps=6", "recording.episodes=0"]
WALK = "rewards:\n  walked: {variable: player_x, on: increase, weight: 0.1}\n\nendings:"


def walking_game(folder: Path) -> Path:
    folder.mkdir()
    for path in DUEL.iterdir():
        if path.is_file():
            shutil.copy(path, folder)
    file = folder / "game.yaml"
    before, _, rest = file.read_text(encoding="utf-8").partition("rewards:")
    text = before + WALK + rest.partition("endings:")[2]
    file.write_text(f"{text}\n{SMALL_WINDOW}\n", encoding="utf-8")
    return file


def config_at(run_dir: Path, game: Path, *overrides: str) -> RunConfig:
    path = run_dir.with_suffix(".yaml")
    path.write_text(TINY.format(run_dir=run_dir), encoding="utf-8")
    return load_config(path, [f"game={game}", *SHORT, *overrides])


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a student with an evaluation behind it, and of its teacher."""
    folder, quiet = tmp_path_factory.mktemp("runs"), Console(file=StringIO())
    game = walking_game(folder / "game")
    pqn = "algorithm={name: pqn, n_steps: 16, batch_size: 16}"
    train(config_at(folder / "pqn", game, pqn), command(quiet, until=64))
    dqn = (
        "algorithm={name: dqn, replay: {capacity: 150}, learning_starts: 40, "
        f"teacher: {{run: {folder / 'pqn'}, temperature: 0.1}}}}"
    )
    train(config_at(folder / "dqn", game, dqn), command(quiet, until=64))
    return folder


@pytest.fixture
def validated_student(runs: Path, tmp_path: Path) -> RunConfig:
    shutil.copytree(runs / "dqn", tmp_path / "dqn")
    config = load_config(tmp_path / "dqn" / "config.yaml", is_saved=True)
    return config.model_copy(update={"run_dir": tmp_path / "dqn"})


def let_walk(checkpoint: Path, action: int) -> None:
    """Write the checkpoint anew with a network that likes one action, whatever it sees."""
    files = {name: (checkpoint / name).read_bytes() for name in read_manifest(checkpoint).files}
    tensors = dict(parse_tensors(files["policy.safetensors"], "policy"))
    for name, tensor in tensors.items():
        tensors[name] = torch.zeros_like(tensor)
    tensors["q_net.q_net.0.bias"][action] = 1.0
    files["policy.safetensors"] = b"".join(map(bytes, dump_tensors(tensors)))
    shutil.rmtree(checkpoint)
    write_files(checkpoint, [(name, (content,)) for name, content in files.items()])


def walking(config: RunConfig, *, student: int, teacher: int) -> RunDir:
    run_dir = RunDir(config.run_dir)
    let_walk(run_dir.checkpoint(64), student)
    let_walk(run_dir.teacher / "checkpoint", teacher)
    return run_dir


@pytest.mark.slow
@pytest.mark.parametrize(
    ("own", "taught", "best"),
    [
        (LEFT, RIGHT, "teacher"),
        pytest.param(RIGHT, LEFT, "student", marks=pytest.mark.slow),
        pytest.param(RIGHT, RIGHT, "teacher", marks=pytest.mark.slow),
    ],
)
def test_the_better_of_the_two_is_the_runs_best_and_a_tie_goes_to_the_teacher(
    own: int, taught: int, best: str, validated_student: RunConfig
) -> None:
    run_dir, found = walking(validated_student, student=own, teacher=taught), list[Event]()
    console = Console(file=StringIO(), width=300)
    events = EventLog(listeners=[found.append, RunConsole(console)])
    final = evaluate_best(run_dir, validated_student, events, StopRequest())
    (validated,) = (event for event in found if isinstance(event, Validated))
    assert (validated.best, validated.episodes) == (best, 200)
    assert (validated.student_mean_reward > 1) == (own == RIGHT)
    assert (validated.teacher_mean_reward > 1) == (taught == RIGHT)
    assert f"the best is the {best}" in console.file.getvalue()  # type: ignore[attr-defined]
    chosen = open_trained_run(run_dir.root, "best")
    assert chosen.is_teacher == (best == "teacher")
    assert final.policy_name == chosen.name
    assert final.evaluation.mean_reward > 1  # it walks right
    assert not open_trained_run(run_dir.root, "latest").is_teacher
    marks = [(finding.is_best, finding.teacher_is_better) for finding in survey(run_dir)]
    assert marks == [(True, best == "teacher")]


@pytest.mark.slow
def test_it_is_decided_once_and_anew_where_the_run_has_gone_on(
    validated_student: RunConfig,
) -> None:
    run_dir, found = walking(validated_student, student=LEFT, teacher=RIGHT), list[Event]()
    events = EventLog(listeners=[found.append])
    for _ in range(2):
        TeacherExtension.choose_best(run_dir, validated_student, events, StopRequest())
    assert len(found) == 1
    assert read_validation(run_dir, at_timesteps=64, best=64) is not None
    assert read_validation(run_dir, at_timesteps=128, best=64) is None
    assert read_validation(run_dir, at_timesteps=64, best=32) is None


@pytest.mark.slow
def test_the_table_of_checkpoints_says_that_the_best_is_the_teacher(
    validated_student: RunConfig, capsys: pytest.CaptureFixture[str]
) -> None:
    run_dir = walking(validated_student, student=LEFT, teacher=RIGHT)
    said = []
    for _ in range(2):
        assert main(["checkpoints", str(run_dir.root), "--json"]) == 0
        (row,) = json.loads(capsys.readouterr().out)
        said.append((row["is_best"], row["teacher_is_better"]))
        TeacherExtension.choose_best(run_dir, validated_student, EventLog(), StopRequest())
    assert said == [(True, False), (True, True)]
    assert main(["checkpoints", str(run_dir.root)]) == 0
    assert "its teacher was at least as good" in " ".join(capsys.readouterr().out.split())


@pytest.mark.slow
def test_a_stop_leaves_it_undecided(validated_student: RunConfig) -> None:
    run_dir, stop = RunDir(validated_student.run_dir), StopRequest()
    stop.ask(Interrupted("SIGTERM"))
    with pytest.raises(EvaluationInterrupted):
        TeacherExtension.choose_best(run_dir, validated_student, EventLog(), stop)
    assert not run_dir.validation.exists()
    assert not open_trained_run(run_dir.root, "best").is_teacher


def test_a_run_that_does_not_want_it_keeps_its_own_best(validated_student: RunConfig) -> None:
    assert validated_student.algorithm.name == "dqn"
    assert validated_student.algorithm.teacher is not None
    teacher = validated_student.algorithm.teacher.model_copy(update={"keep_if_better": False})
    algorithm = validated_student.algorithm.model_copy(update={"teacher": teacher})
    run_dir = walking(validated_student, student=LEFT, teacher=RIGHT)
    config = validated_student.model_copy(update={"algorithm": algorithm})
    TeacherExtension.choose_best(run_dir, config, EventLog(), StopRequest())
    assert not run_dir.validation.exists()
