"""Configs that come with game_rl are found by their names, and files of the user's come first."""

import shutil
from pathlib import Path

import pytest

from game_rl.config import bundled_configs as module
from game_rl.config.bundled_configs import (
    bundled_configs,
    bundled_folder,
    find_config,
    named_files,
    summary_of,
)
from game_rl.config.experiments.experiment import load_experiment
from game_rl.config.loader import load_config

CONFIGS = Path(__file__).parents[2] / "configs"


def test_every_config_of_the_checkout_is_known_by_its_name() -> None:
    assert bundled_configs() == {file.stem: file for file in sorted(CONFIGS.glob("*.yaml"))}


def test_an_installed_package_has_them_inside(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    inside = tmp_path / "game_rl" / "configs"
    shutil.copytree(CONFIGS, inside)
    monkeypatch.setattr(module, "_PACKAGE", tmp_path / "game_rl")
    assert bundled_folder() == inside
    population = load_experiment(find_config(Path("duel_population")))
    assert population.run.game == "duel"  # its member is duel_ppo.yaml, beside it


def test_a_name_is_a_file_here_or_else_a_bundled_config(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    bundled = CONFIGS / "duel_ppo.yaml"
    assert find_config(Path("duel_ppo")) == bundled
    (tmp_path / "duel_ppo.yaml").write_text("mine", encoding="utf-8")
    assert find_config(Path("duel_ppo")) == Path("duel_ppo.yaml")
    (tmp_path / "duel_ppo").write_text("mine, too", encoding="utf-8")
    assert find_config(Path("duel_ppo")) == Path("duel_ppo")


@pytest.mark.parametrize("path", ["duel_pqn.yaml", "runs/duel_pqn", "./no/duel_pqn.yaml", "none"])
def test_a_path_or_an_unknown_name_is_never_a_bundled_config(
    path: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert find_config(Path(path)) == Path(path)


def test_a_population_may_name_a_bundled_config(tmp_path: Path) -> None:
    own = (CONFIGS / "duel_population.yaml").read_text(encoding="utf-8")
    file = tmp_path / "mine.yaml"
    file.write_text(own.replace("config: duel_ppo.yaml", "config: duel_ppo"), encoding="utf-8")
    assert load_experiment(file).run == load_experiment(CONFIGS / "duel_population.yaml").run
    beside = (CONFIGS / "duel_ppo.yaml").read_text(encoding="utf-8")
    (tmp_path / "duel_ppo.yaml").write_text(
        beside.replace("frame_skip: 8", "frame_skip: 6"), encoding="utf-8"
    )
    assert load_experiment(file).run.env.frame_skip == 6


def test_each_has_a_summary_of_one_sentence() -> None:
    summaries = {name: summary_of(file) for name, file in bundled_configs().items()}
    assert all(30 < len(summary) < 220 for summary in summaries.values()), summaries
    assert all("\n" not in summary for summary in summaries.values())
    assert summaries["duel_ppo"] == (
        "The default run: learns to beat level 1 of the bundled fighting game in minutes on two "
        "cores."
    )


def test_the_files_that_a_config_needs_are_those_that_it_names_and_that_these_name() -> None:
    needed = {name: [f.name for f in named_files(f)] for name, f in bundled_configs().items()}
    assert needed["duel_ppo"] == []
    assert needed["duel_erl"] == ["duel_pqn.yaml", "duel_dqn.yaml"]
    assert set(needed["study_selection"]) == {"duel_population.yaml", "duel_ppo.yaml"}


def test_none_names_a_file_outside_the_folder() -> None:
    for file in bundled_configs().values():
        assert load_config(CONFIGS / "duel_ppo.yaml")
        assert all(other.parent == file.parent for other in named_files(file))
