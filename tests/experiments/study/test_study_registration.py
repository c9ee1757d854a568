"""What a registration freezes, and what it says when something differs."""

import json
from pathlib import Path

import pytest

from game_rl.config.experiments.study_config import load_study
from game_rl.errors import ExperimentError, UsageError
from game_rl.experiments.study.study_registration import code_hashes, register, registered
from game_rl.experiments.study.study_results import study_dir
from tests.experiments.study.conftest import MakeStudy, with_erl, write_study_of_experiments


def test_what_was_registered_is_found_again_wherever_it_is_moved(
    make_study: MakeStudy, tmp_path: Path
) -> None:
    study = make_study()
    registration = register(study)
    assert registered(study) == registration
    assert registration.files.keys() == {"arm.yaml"}
    assert registration.study == "../study.yaml"
    assert "games/duel/duel.gb" in registration.code
    other = load_study(study.file, ["executor.parallel=1", f"run_dir={tmp_path / 'elsewhere'}"])
    assert registered(other).sha256() == registration.sha256()


def test_a_study_that_is_not_registered_is_told_how(make_study: MakeStudy) -> None:
    with pytest.raises(UsageError, match=r"with game-rl study register .*, and commit"):
        registered(make_study())


def test_a_study_is_registered_once(make_study: MakeStudy) -> None:
    register(make_study())
    with pytest.raises(UsageError, match="exists already"):
        register(make_study())


def test_a_changed_plan_is_told_by_its_key(make_study: MakeStudy) -> None:
    study = make_study()
    register(study)
    text = study.file.read_text(encoding="utf-8")
    study.file.write_text(text.replace("{episodes: 20}", "{episodes: 30}"), encoding="utf-8")
    with pytest.raises(ExperimentError, match=r"test\.episodes was 20, is 30"):
        registered(load_study(study.file))
    study.file.write_text(f"# another comment\n{text}", encoding="utf-8")
    registered(load_study(study.file))


def test_a_changed_config_of_an_arm_is_told_by_its_name(make_study: MakeStudy) -> None:
    study = make_study()
    register(study)
    arm = study.file.with_name("arm.yaml")
    arm.write_text(arm.read_text(encoding="utf-8") + "seed: 9\n", encoding="utf-8")
    with pytest.raises(ExperimentError, match=r"arm\.yaml has changed"):
        registered(load_study(study.file))


def test_a_changed_class_of_an_arms_own_is_told_by_its_file(
    make_study: MakeStudy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "own_parts.py").write_text("class Own: ...\n", encoding="utf-8")
    study = make_study()
    arm = study.file.with_name("arm.yaml")
    arm.write_text(
        arm.read_text(encoding="utf-8") + "callbacks: [own_parts:Own]\n", encoding="utf-8"
    )
    study = load_study(study.file)
    register(study)
    registered(study)
    (tmp_path / "own_parts.py").write_text("class Own: x = 1\n", encoding="utf-8")
    with pytest.raises(ExperimentError, match=r"own_parts\.py has changed"):
        registered(study)


def test_a_changed_config_of_a_populations_learner_is_told_by_its_name(tmp_path: Path) -> None:
    file = with_erl(write_study_of_experiments(tmp_path / "study"))
    register(load_study(file))
    path = file.parent / "learner.yaml"
    path.write_text(path.read_text(encoding="utf-8") + "# changed\n", encoding="utf-8")
    with pytest.raises(ExperimentError, match=r"learner\.yaml has changed"):
        registered(load_study(file))


def test_changed_code_is_told_by_its_file(make_study: MakeStudy) -> None:
    study = make_study()
    register(study)
    path = study_dir(study.config).registration
    document = json.loads(path.read_text(encoding="utf-8"))
    document["code"] |= {"returns.py": "0" * 64, "gone.py": "0" * 64}
    del document["code"]["seeds.py"]
    path.write_text(json.dumps(document), encoding="utf-8")
    with pytest.raises(ExperimentError) as error:
        registered(study)
    for words in ("game_rl/gone.py is gone", "returns.py has changed", "game_rl/seeds.py is new"):
        assert words in str(error.value)


def test_what_python_compiles_is_no_code() -> None:
    assert not [name for name in code_hashes() if "__pycache__" in name]
    assert "experiments/study/study_registration.py" in code_hashes()
