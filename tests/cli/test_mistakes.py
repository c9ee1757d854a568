"""Mistakes at the command line: each is answered with the right next step, and exit code 2."""

from pathlib import Path

import pytest

from game_rl.cli.main import main
from game_rl.files.run_dir import RunDir
from game_rl.lake.lake import Lake
from tests.cli.test_main import CONFIG, kept_run
from tests.lake.plays import SCHEMA

Output = pytest.CaptureFixture[str]

# what is typed (CONFIG, RUN and GAME stand for paths), and what the answer has in it
MISTAKES = {
    "no command": ("", "game-rl train duel_ppo"),
    "a slip in a command": ("trian CONFIG", "did you mean game-rl train CONFIG?"),
    "a command left out": ("CONFIG", "a command is missing: game-rl train CONFIG"),
    "a slip in an option": ("train CONFIG --fource", "did you mean --force?"),
    "a key as an option": ("train CONFIG --total-timesteps 5", "total_timesteps=..."),
    "a slip in a run": ("evaluate DULE", "did you mean RUN?"),
    "a slip in a run to resume": ("train --resume DULE", "did you mean RUN?"),
    "a slip in a run's status": ("status DULE", "did you mean RUN?"),
    "a slip in a run's lineage": ("lineage DULE", "did you mean RUN?"),
    "a config where a run is due": ("evaluate CONFIG", "game-rl train CONFIG"),
    "a run where a config is due": ("train RUN", "game-rl train --resume RUN"),
    "a ROM where a config is due": ("train ROM", "game-rl new-game ROM"),
    "a game where a config is due": ("train GAME", "game=GAME"),
    "no config": ("preflight", "such as duel_ppo; game-rl configs lists them"),
    "two configs": ("train CONFIG --config other.yaml", "both name a config"),
    "a bundled config and another": ("train duel_ppo --config CONFIG", "both name a config"),
    "a slip in a bundled config": ("train duel_pop", "did you mean duel_population, a config"),
    "a bundled config in a folder": ("train configs/duel_pqm.yaml", "did you mean"),
    "a bundled config as a command": ("duel_ppo seed=1", "game-rl train duel_ppo seed=1"),
    "a slip in a config to print": ("configs duel_pp", "did you mean duel_ppo?"),
    "no config to copy": ("configs --copy", "--copy copies one config: name it"),
    "a config in the demo": ("demo duel_dqn", "game-rl train takes a config"),
    "neither config nor key": ("train CONFIG seed", "neither a config file nor KEY=VALUE"),
    "a section's name alone": ("train CONFIG algorithm=dqn", "did you mean algorithm.name=dqn?"),
    "a Mac's GPU": ("train CONFIG device=mps", "write auto, cpu, cuda:0"),
    "a slip in a key": ("train CONFIG env.n_env=2", "did you mean n_envs?"),
    "a size without unit": ("preflight CONFIG --on ram=8", "write ram=8GiB"),
    "a word for a number": ("evaluate RUN --episodes many", "'many' is not a whole number"),
    "two checkpoints": ("train --resume RUN@64 --at 64", "leave one out"),
    "no such checkpoint": ("train --resume RUN@7", "it has: 64"),
    "storage without a capacity": ("preflight --storage shape=84x84", "capacity is missing"),
    "storage of unknown numbers": (
        "preflight --storage shape=84x84,dtype=int,capacity=5",
        "write one of uint8",
    ),
    "a smoke test of a run": ("train --resume RUN --smoke", "leave --resume and --fork out"),
    "a folder that is not there": ("runs no/such/folder", "name one that has run directories"),
    "nobody to answer": ("runs FOLDER --prune", "add --yes"),
    "an answer without a question": ("runs FOLDER --yes", "add --prune"),
    "a question beside JSON": ("runs FOLDER --prune --json", "add --yes"),
    "options before the command": ("-q train CONFIG", "game-rl train CONFIG -q"),
    "an option alone": ("--hlep", "did you mean game-rl --help?"),
    "a key of a section as an option": ("train CONFIG --n-envs 4", "without dashes: env.n_envs="),
    "a ROM that is not there": ("new-game roms/x.gb", "(no .gb or .gbc file in roms/)"),
    "an algorithm that is not there": (
        "train CONFIG algorithm=recurrent_ppo",
        "{name: ppo, ...} or",
    ),
    "JSON where there are events": ("train CONFIG --json", "did you mean --log json?"),
    "help as a command": ("help train", "game-rl train --help"),
    "another program's word": ("resume RUN", "use game-rl train --resume RUN"),
    "a run where a command is due": ("RUN", "game-rl status RUN"),
    "a slip in a command's command": ("replay inf LAKE", "did you mean info?"),
    "a group without a command": ("remote", "for example: game-rl remote list s3://bucket/folder"),
    "a slip in a choice": ("export RUN --format sb4 --output x.zip", "did you mean sb3?"),
    "an argument left out": ("evaluate", "for example: game-rl evaluate runs/duel_ppo"),
    "a schema's name without dashes": ("schema population", "did you mean --population?"),
    "a folder of runs": ("evaluate FOLDER", "name a run in it, such as RUN"),
    "a Lake where a run is due": ("status LAKE", "game-rl replay info LAKE shows; its run is RUN"),
    "a run where a Lake is due": ("replay info RUN", "name RUN/lake"),
    "a run to compact": ("replay compact RUN", "name RUN/lake"),
    "a checkpoint's folder": ("evaluate RUN/checkpoints/000000000064", "name RUN@64"),
    "a word as a checkpoint": ("record RUN@best", "write a timestep after the @, one of 64"),
    "a word as a checkpoint of a fork": ("train --fork RUN@best run_dir=x", "the @, one of 64"),
    "a checkpoint of a whole run": ("status RUN@64", "game-rl checkpoints RUN@64 shows"),
    "an address on the Hub": ("evaluate hf:ada/ppo-duel", "first: game-rl pull hf:ada/ppo-duel"),
    "a checkpoint to upload": ("remote push RUN@64", "this command is for a whole run: name RUN"),
    "no such checkpoint to list": ("checkpoints RUN@7", "it has: 64"),
    "no such checkpoint in a lineage": ("lineage RUN@7", "it has: 64"),
    "an address where a run is due": ("evaluate s3://b/r", "game-rl remote fetch s3://b/r"),
    "a folder where an address is due": ("remote list FOLDER", "not an address; write file://"),
    "a folder to upload to": ("remote push RUN --to FOLDER", "write one such as s3://"),
    "storage that is not there": ("remote list file:///no/such/disk", "correct the address"),
    "a config to fork": ("train --fork CONFIG run_dir=x", "game-rl train CONFIG"),
    "a run as a game": ("check-game CONFIG", "the config of a training, not a game"),
    "a file as a folder": ("new-game ROM --folder CONFIG", "CONFIG is a file, not a folder"),
    "a file as a Lake": ("train CONFIG lake.path=ROM", "name a new folder, or that of a Lake"),
    "another level for a Lake": (
        "train CONFIG lake.path=LAKE lake.compression_level=3",
        "--set lake.compression_level=3  lake.compression_level: found 3, but the Lake at LAKE was",
    ),
    "a clip in a file": ("record RUN --output ROM/clip.gif", "ROM is a file, not a folder"),
    "a zip in a file": ("export RUN --output ROM/x.zip", "ROM is a file, not a folder"),
    "a report in a file": ("compare RUN --output ROM", "ROM is a file, not a folder"),
    "a folder as a replay's file": ("replay export LAKE --output RUN", "name a file in it"),
    "a config as a replay": ("replay import CONFIG --output x", "save_replay_buffer wrote"),
    "a folder as a replay": ("replay import RUN --output x", "is a folder, not a file"),
    "a run as a study": ("study status RUN", "name the study's file"),
    "a run's config as a study": ("study register CONFIG", "name their run directories"),
    "a file among runs": ("compare RUN CONFIG", "name only directories of runs"),
    "no such run to compare": ("compare RUN DULE", "did you mean RUN?"),
    "a run in place of a file": ("tune RUN", "name the config in it"),
    "a negative seed": ("check-game duel --seed -1", "'-1' is not a whole number"),
}


@pytest.fixture(scope="module")
def places(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    folder = tmp_path_factory.mktemp("mistakes")
    config = folder / "my_run.yaml"
    config.write_text(CONFIG.format(run_dir=folder / "new"), encoding="utf-8")
    run = Path(kept_run(folder / "runs" / "duel_ppo", timesteps=64))
    RunDir(run).identity()
    (run / "damaged").mkdir()
    Lake.create(run / "lake", SCHEMA)
    games = Path(__file__).parents[2] / "game_rl" / "games" / "duel"
    return {
        "CONFIG": str(config),
        "RUN": str(run),
        "LAKE": str(run / "lake"),
        "DULE": str(run.with_name("dule_ppo")),
        "FOLDER": str(run.parent),
        "ROM": str(games / "duel.gb"),
        "GAME": str(games / "game.yaml"),
    }


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_is_answered_with_the_next_step(
    name: str, places: dict[str, str], capsys: Output
) -> None:
    typed, answer = MISTAKES[name]
    for word, path in places.items():
        typed, answer = typed.replace(word, path), answer.replace(word, path)
    assert main(typed.split()) == 2
    printed = capsys.readouterr()
    assert printed.err.startswith("error: ")
    assert answer in printed.err
    assert "Traceback" not in printed.err
