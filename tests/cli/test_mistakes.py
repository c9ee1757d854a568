"""Mistakes at the command line: each is answered with the right next step, and exit code 2."""

from pathlib import Path

import pytest

from game_rl.cli.main import main
from game_rl.run_dir import RunDir
from tests.cli.test_main import CONFIG, kept_run

Output = pytest.CaptureFixture[str]

# what is typed (CONFIG, RUN and GAME stand for paths), and what the answer has in it
MISTAKES = {
    "no command": ("", "game-rl train configs/duel_ppo.yaml"),
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
    "no config": ("preflight", "configs/duel_ppo.yaml"),
    "two configs": ("train CONFIG --config other.yaml", "both name a config"),
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
}


@pytest.fixture(scope="module")
def places(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    folder = tmp_path_factory.mktemp("mistakes")
    config = folder / "my_run.yaml"
    config.write_text(CONFIG.format(run_dir=folder / "new"), encoding="utf-8")
    run = Path(kept_run(folder / "runs" / "duel_ppo", timesteps=64))
    RunDir(run).identity()
    (run / "damaged").mkdir()
    games = Path(__file__).parents[2] / "game_rl" / "games" / "duel"
    return {
        "CONFIG": str(config),
        "RUN": str(run),
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
