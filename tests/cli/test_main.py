import io
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from game_rl.checkpoints.checkpoint_files import write_files
from game_rl.checkpoints.checkpoint_state import CheckpointState
from game_rl.cli.main import main
from game_rl.cli.parser import COMMANDS
from game_rl.config.loader import dump_config
from game_rl.config.schema import RunConfig
from game_rl.files.run_dir import RunDir
from game_rl.games.definition import load_game
from tests.config.wrong_configs.every import WRONG_CONFIGS
from tests.config.wrong_configs.wrong_config import WrongConfig
from tests.emulator.roms import BAD_ROMS, BadRom
from tests.games.example import BAD_GAMES, BadGame, write_game

Output = pytest.CaptureFixture[str]
CONFIG = "game: duel\ntotal_timesteps: 400_000\nrun_dir: {run_dir}\nalgorithm: {{n_steps: 64}}\n"
HANG_GUARD_S = 60
COMMAND = str(Path(sys.executable).with_name("game-rl"))


@pytest.fixture
def config(tmp_path: Path) -> Path:
    path = tmp_path / "run.yaml"
    path.write_text(CONFIG.format(run_dir=tmp_path / "run"), encoding="utf-8")
    return path


def call(*arguments: object) -> int:
    return main([str(argument) for argument in arguments])


def flat(text: str) -> str:
    return " ".join(text.split())


@pytest.mark.parametrize("wrong", WRONG_CONFIGS, ids=lambda wrong: wrong.name)
def test_a_wrong_config_ends_with_2_and_a_message(
    wrong: WrongConfig, tmp_path: Path, capsys: Output
) -> None:
    path = tmp_path / "run.yaml"
    path.write_bytes(wrong.content if isinstance(wrong.content, bytes) else wrong.content.encode())
    overrides = [part for text in wrong.overrides for part in ("--set", text)]
    assert call("train", "--config", path, *overrides) == 2
    told = capsys.readouterr().err
    assert told.startswith(f"error: {path}: ")
    assert any(all(part in line for part in wrong.told) for line in told.splitlines()), told


@pytest.mark.parametrize("bad", BAD_ROMS, ids=lambda bad: bad.name)
def test_a_wrong_rom_ends_with_2_and_a_message(bad: BadRom, tmp_path: Path, capsys: Output) -> None:
    assert call("new-game", bad.make(tmp_path), "--folder", tmp_path / "new") == 2
    told = capsys.readouterr().err
    assert told.startswith("error: ")
    assert bad.says in told
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize("bad", BAD_GAMES, ids=lambda bad: bad.name)
def test_a_wrong_game_file_ends_with_2_and_a_message(
    bad: BadGame, tmp_path: Path, config: Path, capsys: Output
) -> None:
    game = bad.make(tmp_path)
    assert call("preflight", "--config", config, "--set", f"game={game}") == 2
    told = capsys.readouterr().err
    assert told.startswith("error: ")
    assert all(part in told for part in bad.says), told


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (
            ["train"],
            "train needs a config: a file, or one that comes with game_rl, such as duel_ppo",
        ),
        (["train", "--resume", "runs", "--config", "a.yaml"], "leave --config and --fork out"),
        (["train", "--resume", "no/such/run"], "no/such/run is not a run directory"),
        (["evaluate", "no/such/run"], "no/such/run is not a run directory"),
        (["record", "."], ". is not a run directory: it has no config.yaml"),
        (["check-game", "dule"], "did you mean duel"),
        (
            ["replay", "import", "no.pkl", "--output", "lake"],
            "no.pkl: no such file; name",
        ),
        (["remote", "fetch", "no/such", "x"], "no storage has such an address; write one such as"),
    ],
    ids=lambda value: value if isinstance(value, str) else " ".join(value),
)
def test_a_wrong_command_ends_with_2_and_the_way_out(
    arguments: list[str], told: str, capsys: Output
) -> None:
    assert call(*arguments) == 2
    assert told in capsys.readouterr().err


@pytest.mark.slow
def test_unknown_start_states_are_told_before_anything_starts(config: Path, capsys: Output) -> None:
    assert call("preflight", "--config", config, "--set", "env.start_states=[levle_1]") == 2
    assert "did you mean level_1" in capsys.readouterr().err


@pytest.mark.parametrize("arguments", [["--help"], *([name, "--help"] for name in COMMANDS)])
def test_every_command_explains_itself(arguments: list[str], capsys: Output) -> None:
    with pytest.raises(SystemExit) as exited:
        call(*arguments)
    assert exited.value.code == 0
    text = capsys.readouterr().out
    if arguments == ["--help"]:
        assert all(command.summary.split()[0] in text for command in COMMANDS.values())
        assert all(f"  {name} " in text for name in COMMANDS)
        assert "exit codes" in text
    else:
        assert "example:" in text or "commands:" in text


def test_preflight_prints_exactly_the_documented_json(config: Path, capsys: Output) -> None:
    assert call("preflight", "--config", config, "--on", "ram=8GiB,vram=8GiB,cpus=4", "--json") == 0
    report = json.loads(capsys.readouterr().out)
    memory = {"predicted_peak_bytes", "limit_bytes", "peak_phase", "parts"}
    assert set(report) == {
        "verdict", "ram", "vram", "replay_vram", "disk", "training", "speed", "findings", "growth",
        "teacher", "lake",
    }  # fmt: skip
    assert (report["speed"], report["lake"]) == (None, None)
    assert report["growth"] == []  # PPO keeps no replay
    assert set(report["ram"]) == set(report["vram"]) == memory
    assert set(report["disk"]) == {"predicted_total_bytes", "free_bytes", "parts", "plan"}
    assert set(report["training"]) == {
        "timesteps_per_update",
        "updates",
        "timesteps",
        "frames",
        "minibatches_per_epoch",
        "gradient_steps_per_update",
        "checkpoints",
        "evaluations",
        "samples_per_timestep",
        "offline_gradient_steps",
        "may_end_early",
    }
    for part in (*report["ram"]["parts"], *report["disk"]["parts"]):
        assert set(part) == {"name", "bytes"}
    for finding in report["findings"]:
        assert set(finding) == {"severity", "code", "key", "message", "fix"}
        assert finding["fix"] is None or set(finding["fix"]) == {"key", "value"}


def test_what_does_not_fit_ends_with_3_and_a_fix(config: Path, capsys: Output) -> None:
    large = [
        "algorithm={n_steps: 8192, batch_size: 65536, micro_batch_size: null}",
        "evaluation.every_timesteps=100_000",
    ]
    overrides = [word for value in large for word in ("--set", value)]
    assert call("preflight", "--config", config, *overrides, "--on", "ram=4GiB", "--json") == 3
    report = json.loads(capsys.readouterr().out)
    assert report["verdict"] == "does_not_fit"
    assert any(finding["fix"] for finding in report["findings"])


@pytest.mark.parametrize("encoding", ["ascii", "iso-8859-1"])
def test_a_table_is_printed_on_every_terminal(
    encoding: str, config: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(written, encoding=encoding))
    assert call("preflight", "--config", config, "--on", "ram=64GiB") == 0
    text = written.getvalue().decode(encoding)
    assert "RAM   #...................  " in text
    assert "?" not in text


def test_what_cannot_be_written_fails_unless_nobody_wants_it(
    capsys: Output, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Path("/dev/full").open("w", encoding="utf-8") as full, monkeypatch.context() as patched:
        patched.setattr(sys, "stdout", full)
        assert call("study", "status", "no/such/file") == 2
        assert call("schema") == 1
    assert capsys.readouterr().err.endswith("No space left on device\n")
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "w", encoding="utf-8") as pipe, monkeypatch.context() as patched:
        patched.setattr(sys, "stdout", pipe)
        assert call("schema") == 0
    assert capsys.readouterr().err == ""


def test_schemas_are_json_schemas_of_the_models(capsys: Output) -> None:
    assert call("schema") == 0
    assert "total_timesteps" in json.loads(capsys.readouterr().out)["properties"]
    assert call("schema", "--game") == 0
    assert "start_states" in json.loads(capsys.readouterr().out)["properties"]


def test_check_game_shows_ranges_sums_and_a_contact_sheet(tmp_path: Path, capsys: Output) -> None:
    episode = tmp_path / "episode.json"
    episode.write_text(
        json.dumps({"start_state": "level_1", "actions": ["right", "kick"] * 20}), encoding="utf-8"
    )
    sheet = tmp_path / "sheet.png"
    status = call("check-game", "duel", "--timesteps", 400, "--sheet", sheet, "--recorded", episode)
    assert status == 0
    text = flat(capsys.readouterr().out)
    assert "player_health" in text
    assert "damage_dealt" in text
    assert sheet.read_bytes().startswith(b"\x89PNG")


@pytest.mark.slow
def test_the_contact_sheet_is_left_in_the_games_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Output
) -> None:
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "my_game"
    folder.mkdir()
    write_game(folder)
    sheet = folder / "contact_sheet.png"
    for name in ("my_game/game.yaml", "my_game/"):
        assert call("check-game", name, "--timesteps", 20) == 0
        last = (
            "contact sheet: my_game/contact_sheet.png "
            "start scripts, step by step: my_game/start_scripts.png"
        )
        assert flat(capsys.readouterr().out).endswith(last)
        sheet.unlink()
    assert call("check-game", "duel", "--timesteps", 20) == 0
    written = sorted(path.name for path in tmp_path.iterdir() if path.is_file())
    assert written == ["contact_sheet.png", "parts.png", "start_scripts.png"]


def test_a_new_game_file_can_be_read_again(tmp_path: Path, capsys: Output) -> None:
    rom = Path(__file__).parents[2] / "game_rl/games/duel/duel.gb"
    assert call("new-game", rom, "--folder", tmp_path, "--no-play") == 0
    path = tmp_path / "game.yaml"
    assert str(path) in capsys.readouterr().out
    assert yaml.safe_load(path.read_text(encoding="utf-8"))["title"] == "Duel"


def test_a_place_where_nothing_can_be_written_is_named(config: Path, capsys: Output) -> None:
    assert call("train", "--config", config, "--set", "run_dir=/proc/run", "--force") == 1
    told = capsys.readouterr().err
    assert told.startswith("error: /proc/run: ")
    assert "Traceback" not in told


@pytest.mark.slow
def test_a_name_that_an_old_locale_does_not_have_is_refused(config: Path) -> None:
    text = config.read_text(encoding="utf-8")
    config.write_text(text.replace("/run\n", "/läufe\n"), encoding="utf-8")
    old = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0", "PYTHONIOENCODING": ""}
    ended = subprocess.run(
        [sys.executable, "-m", "game_rl", "train", "--config", str(config)],
        capture_output=True,
        env={**os.environ, **old},
        timeout=HANG_GUARD_S,
        check=False,
    )
    assert ended.returncode == 2
    assert b"laufe cannot be the name of a file here, where names are in ascii" in ended.stderr
    assert b"Traceback" not in ended.stderr


COUNTING = """\
import contextlib, io, json, sys
from game_rl.cli.main import main
for words in json.loads(sys.argv[1]):
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        with contextlib.suppress(SystemExit):
            main(words)
    ours = [name for name in sys.modules if name.startswith("game_rl.")]
    print(json.dumps([len(ours), len(sys.modules), sorted(set(sys.modules) & set(sys.argv[2:]))]))
"""
LARGE = (
    "PIL pyboy sdl2 torch stable_baselines3 tensorboard starlette uvicorn matplotlib obstore av "
    "ray wandb game_rl.training.session"
)


def test_each_command_loads_only_what_it_needs(tmp_path: Path) -> None:
    """One after the other in one interpreter, so what one loads counts for those after it."""
    most = [
        (["--version"], 20, 450),
        (["--help"], 20, 450),
        (["configs"], 60, 650),
        (["train", str(tmp_path / "none.yaml")], 220, 800),
        (["train", "duel_ppo", "nokey=1"], 220, 800),
        (["status", str(tmp_path / "none")], 230, 820),
        (["runs", str(tmp_path)], 260, 850),
        (["plot", str(tmp_path / "none"), "--output", str(tmp_path / "a.png")], 260, 850),
        (["report", str(tmp_path / "none"), "--output", str(tmp_path / "a.html")], 260, 850),
        (["compare", str(tmp_path / "none")], 280, 880),
        (["places", str(tmp_path / "none")], 290, 900),
        (["watch", str(tmp_path / "none")], 300, 950),
    ]
    words = json.dumps([each for each, *_ in most])
    command = [sys.executable, "-W", "ignore", "-c", COUNTING, words, *LARGE.split()]
    printed = subprocess.run(command, capture_output=True, check=True, encoding="utf-8").stdout
    for (called, n_ours, n_all), line in zip(most, printed.splitlines(), strict=True):
        ours, loaded, large = json.loads(line)
        assert large == [], called
        assert ours <= n_ours, called
        assert loaded <= n_all, called


def test_mistakes_are_told_without_loading_torch(tmp_path: Path, config: Path) -> None:
    """Every command is called with each kind of mistake, all in one fresh interpreter.

    So are the checkpoints of a run, which are listed and verified without torch.
    """
    rom = tmp_path / "no.gb"
    game = tmp_path / "game.yaml"
    duel = Path(__file__).parents[2] / "game_rl/games/duel/game.yaml"
    game.write_text(duel.read_text(encoding="utf-8").replace("duel.gb", rom.name), "utf-8")
    teacher = "algorithm={name: dqn, teacher: {run: no/such/run}, learning_starts: 100}"
    lake = "algorithm={name: dqn, learn_from: {lakes: [no/such/lake]}, learning_starts: 100}"
    run = kept_run(tmp_path / "kept", timesteps=64)
    lost = kept_run(tmp_path / "lost", timesteps=64, game=str(game))
    train = ["train", "--config", str(config)]
    mistakes = {
        "no such file": ["train", "--config", str(tmp_path / "none.yaml")],
        "no.gb": [*train, "--set", f"game={game}"],
        "already holds a run": [*train, "--set", f"run_dir={run}"],
        "no/such/run is not a run": [*train, "--set", teacher],
        "no/such/lake is not a Lake": [*train, "--set", lake],
        "keeps no checkpoint of timestep 5; it has: 64": ["evaluate", f"{run}@5"],
        "both name a checkpoint": ["record", f"{run}@64", "--checkpoint", "64"],
        "must end in .gif or .mp4": ["record", run, "--output", "clip.avi"],
        "did you mean level_1": ["evaluate", run, "--start-states", "levle_1"],
        "must end in .zip or .onnx, not .txt": ["export", run, "--output", "policy.txt"],
        "there is no file": ["import", "no.zip", "--config", str(config)],
        "algorithm.name is dqn": ["tune", "--config", str(config), "--set", teacher],
        "a resumed run cannot change seed": ["train", "--resume", run, "--set", "seed=5"],
        "timestep 7; it has: 64": ["train", "--resume", run, "--at", "7"],
        "timestep 8; it has: 64": ["train", "--fork", f"{run}@8", "--set", "run_dir=runs/new"],
        "exists and is not empty": ["train", "--fork", run, "--set", f"run_dir={lost}"],
        "both name a checkpoint; leave": ["train", "--resume", f"{run}@64", "--at", "64"],
        "is not a run directory": ["checkpoints", "no/such/run"],
        "no/such/push is not a run": ["remote", "push", "no/such/push"],
        "none is not a Lake": ["replay", "export", "none", "--output", "replay.pkl"],
    }
    games = {
        "evaluate": ["evaluate", lost],
        "resume": ["train", "--resume", lost],
        "preflight": ["preflight", "--config", str(config), "--set", f"game={game}"],
        "tune": ["tune", "--config", str(config), "--set", f"game={game}"],
    }
    code = f"""
import contextlib, io, json, sys
from game_rl.cli.main import main
from game_rl.cli.parser import COMMANDS
with contextlib.redirect_stdout(io.StringIO()) as printed:
    assert main(["checkpoints", {run!r}, "--json"]) == 0
assert json.loads(printed.getvalue())[0]["timesteps"] == 64 and "torch" not in sys.modules
for said, words in [*{mistakes!r}.items(), *(("no.gb", words) for words in {games!r}.values())]:
    with contextlib.redirect_stderr(io.StringIO()) as told:
        code = main(words)
    assert (code, "torch" in sys.modules) == (2, False), (words, told.getvalue())
    assert said in told.getvalue(), (words, told.getvalue())
"""
    command = [sys.executable, "-c", code]
    ended = subprocess.run(command, capture_output=True, timeout=HANG_GUARD_S, check=False)
    assert ended.returncode == 0, ended.stderr.decode()


def kept_run(root: Path, *, timesteps: int, **changes: str) -> str:
    """Write a run directory with one checkpoint, as far as commands read it without torch."""
    run_dir = RunDir(root)
    root.mkdir(parents=True)
    values = {"game": "duel", "total_timesteps": 400_000, "run_dir": root, **changes}
    config = RunConfig.model_validate(values)
    run_dir.config.write_text(dump_config(config), encoding="utf-8")
    state = CheckpointState(
        num_timesteps=timesteps,
        n_updates=1,
        schedule_timesteps=config.total_timesteps,
        best=None,
        rom_sha256=load_game("duel").rom.sha256,
        config=config.model_dump(mode="json"),
        game=load_game("duel").definition.model_dump(mode="json", by_alias=True),
        versions={},
        computing={},
    )
    text = state.model_dump_json().encode()
    run_dir.checkpoints.mkdir()
    write_files(run_dir.checkpoint(timesteps), [("state.json", (text,))])
    return str(root)


@pytest.mark.parametrize("module", ["gymnasium", "difflib", "rich"])
@pytest.mark.parametrize("program", [["-m", "game_rl"], [COMMAND]], ids=["module", "script"])
def test_ctrl_c_while_modules_are_loaded_prints_no_traceback(
    tmp_path: Path, module: str, program: list[str]
) -> None:
    """The package loads gymnasium, the command line difflib, and a command rich."""
    ctrl_c = "import os, signal\nos.kill(os.getpid(), signal.SIGINT)\n"
    (tmp_path / f"{module}.py").write_text(ctrl_c, encoding="utf-8")
    ended = subprocess.run(
        [sys.executable, *program, "status", str(tmp_path)],
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        capture_output=True,
        encoding="utf-8",
        timeout=HANG_GUARD_S,
        check=False,
    )
    assert ended.returncode == 130
    assert ended.stderr in ("", "interrupted\n")
