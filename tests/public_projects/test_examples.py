"""Each example is valid without its ROM, and its run is forecast."""

import hashlib
import itertools
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from game_rl.cli.main import main
from game_rl.config.loader import load_config
from game_rl.envs.make_env import check_env_config, make_observation_format
from game_rl.game_check.game_check import check_game_file
from game_rl.games.definition import GameDefinition, load_game
from game_rl.preflight.preflight import preflight
from game_rl.system.machine import detect_machine, parse_machine
from tests.public_projects.scripted import EXAMPLES, NAMES, game_of, run_of

LARGEST_FILE_BYTES = 20_000  # no ROM, no state, no picture of another project


@pytest.fixture(autouse=True)
def _no_roms(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("GAME_RL_ROMS", raising=False)


@pytest.mark.parametrize("name", NAMES)
def test_an_example_is_valid_without_its_rom_and_names_it(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    file = EXAMPLES / name / "game.yaml"
    check = check_game_file(str(file))
    assert check.rom.path is None
    ((algorithm, digest),) = check.rom.hashes.items()
    assert main(["check-game", str(file), "--without-rom"]) == 0
    out = capsys.readouterr().out
    assert f"missing: the ROM with {algorithm} {digest}" in out
    for place in check.missing_files.values():
        assert place in out


@pytest.mark.parametrize("name", NAMES)
def test_the_run_of_an_example_fits_its_game_and_is_forecast(name: str) -> None:
    run = run_of(name)
    assert run.game == str(EXAMPLES / name / "game.yaml")
    assert run.run_dir == Path("runs") / name
    game = load_game(run.game, without_rom=True)
    check_env_config(run.env, game)
    seen = make_observation_format(run.env, game)
    machine = parse_machine("ram=64GiB,vram=0,disk=200GiB,cpus=16", here=detect_machine(Path()))
    report = preflight(run, game, machine)
    assert report.verdict == "fits", [finding.message for finding in report.findings]
    assert set(seen.part_bytes) == {*run.env.observation.parts} | (
        {"screen"} if run.env.observation.screen else set()
    )


@pytest.mark.parametrize("name", NAMES)
def test_an_example_has_only_small_text_files_and_names_its_sources(name: str) -> None:
    for file in (EXAMPLES / name).iterdir():
        if file.is_file():
            assert file.suffix in {".yaml", ".md", ".py"}
            assert file.stat().st_size < LARGEST_FILE_BYTES
            file.read_text(encoding="utf-8")
    text = (EXAMPLES / name / "README.md").read_text(encoding="utf-8")
    assert "https://github.com/" in text
    assert "commit" in text
    assert f"({name}/README.md)" in (EXAMPLES / "README.md").read_text(encoding="utf-8")


def _random_values(definition: GameDefinition, random: np.random.Generator) -> dict[str, Any]:
    """Small values of each variable, whether or not the game ever has them together."""
    found: dict[str, Any] = {}
    for name, spec in definition.variables.items():
        if spec.type == "bits" and spec.operation is None:
            found[name] = tuple(random.integers(2, size=8 * spec.n_bytes).tolist())
        elif spec.addresses is not None:
            found[name] = tuple(random.integers(40, size=len(spec.addresses)).tolist())
        elif spec.operation == "ratio":
            found[name] = float(random.random())
        else:
            found[name] = int(random.integers(40))
    return found


@pytest.mark.parametrize("name", [name for name in NAMES if game_of(name).definition.reward])
def test_the_reward_class_of_an_example_goes_on_after_a_save_and_load(name: str) -> None:
    game, random = game_of(name), np.random.default_rng(3)
    actions = game.action_names
    played = [""]
    sources: dict[str, Callable[[], object]] = {
        "memory": dict,
        "action": lambda: played[0],
        "screen": lambda: None,
    }
    reward = game.custom_reward(sources)
    assert reward is not None
    reward.reset(_random_values(game.definition, random))
    kept = reward.renewed()
    for _ in range(60):
        values = _random_values(game.definition, random)
        played[0] = actions[int(random.integers(len(actions)))]
        assert kept.step(values) == reward.step(values)
        for kind in ("endings", "truncations"):
            assert kept.ends(kind, values) == reward.ends(kind, values)
        kept = kept.renewed()


def test_no_two_examples_are_the_same() -> None:
    texts = [(EXAMPLES / name / "game.yaml").read_bytes() for name in NAMES]
    assert len({hashlib.sha256(text).digest() for text in texts}) == len(NAMES)


@pytest.mark.parametrize("name", ["pokemon_red_kantorl", "pokemon_red_nerorl"])
def test_the_command_of_a_readme_that_adds_a_memory_is_valid(name: str) -> None:
    text = (EXAMPLES / name / "README.md").read_text(encoding="utf-8")
    (block,) = (part for part in text.split("```") if part.startswith("bash\ngame-rl train"))
    words = shlex.split(block.removeprefix("bash\n"))
    overrides = [word for before, word in itertools.pairwise(words) if before == "--set"]
    run = load_config(EXAMPLES / name / "run.yaml", overrides)
    assert run.algorithm.memory is not None


def test_examples_of_agents_that_remember_do_so() -> None:
    sizes = {name: run_of(name).algorithm.memory for name in NAMES}
    found = {name: memory.size for name, memory in sizes.items() if memory is not None}
    assert found == {"pokemon_red_flags": 256, "pokemon_red_puffer": 512}
