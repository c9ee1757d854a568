"""Runs of a folder that was moved, compared with their files with the one path for the other."""

from pathlib import Path

from game_rl.config.experiments.experiment import dump_experiment
from game_rl.config.loader import dump_config, load_config
from game_rl.config.strict_model import with_changed
from game_rl.experiments.experiment_dir import ExperimentDir
from game_rl.experiments.train_experiment import follow_lake
from tests.experiments.conftest import MakeMixture, MakePopulation


def mixture_at(make_mixture: MakeMixture, root: Path) -> ExperimentDir:
    """With a member, and two learners: one that has a copy of its teacher, and one without."""
    mixture, folder = make_mixture(root.name), ExperimentDir(root)
    runs = {"00": mixture.run}
    for name in ("learner.g0001", "learner.g0002"):
        teacher = {"run": str(root / "members" / "00@128"), "keep_if_better": False}
        runs[name] = with_changed(mixture.learner, {("algorithm", "teacher"): teacher})
    for name, config in runs.items():
        run_dir = folder.member(name)
        run_dir.root.mkdir(parents=True)
        run_dir.config.write_text(dump_config(config), encoding="utf-8")
    folder.member("learner.g0001").teacher.mkdir()
    folder.config.write_text(dump_experiment(mixture), encoding="utf-8")
    return folder


def test_they_look_for_lake_and_teacher_where_the_folder_is_now(
    make_mixture: MakeMixture, tmp_path: Path
) -> None:
    here, there = tmp_path / "here", tmp_path / "there"
    mixture_at(make_mixture, here).root.rename(there)
    folder, expected = ExperimentDir(there), {}
    for name in ("00", "learner.g0001", "learner.g0002"):
        text = folder.member(name).config.read_text(encoding="utf-8")
        copy = tmp_path / f"{name}.yaml"
        copy.write_text(text.replace(str(here), str(there)), encoding="utf-8")
        expected[name] = load_config(copy, is_saved=True).model_dump(exclude={"run_dir"})
    # it goes on with its own copy, and its checkpoints name the old place
    expected["learner.g0001"]["algorithm"]["teacher"]["run"] = str(here / "members" / "00@128")
    follow_lake(folder)
    for name, values in expected.items():
        found = load_config(folder.member(name).config, is_saved=True)
        assert found.model_dump(exclude={"run_dir"}) == values


def test_where_nothing_was_moved_nothing_is_written(
    make_mixture: MakeMixture, make_population: MakePopulation, tmp_path: Path
) -> None:
    folder = mixture_at(make_mixture, tmp_path / "here")
    run_dir = folder.member("00")
    run_dir.config.write_text("as it was", encoding="utf-8")
    follow_lake(folder)
    assert run_dir.config.read_text(encoding="utf-8") == "as it was"
    folder.config.write_text(
        dump_experiment(make_population()), encoding="utf-8"
    )  # each member has its own
    follow_lake(folder)
    assert run_dir.config.read_text(encoding="utf-8") == "as it was"
