"""Every bundled config is valid, and an editor finds its schema."""

from pathlib import Path

import pytest

from game_rl.config.experiments.experiment import load_experiment
from game_rl.config.experiments.mixture_config import MixtureConfig
from game_rl.config.experiments.population_config import PopulationConfig
from game_rl.config.experiments.study_config import StudyConfig, load_study
from game_rl.config.loader import config_kind, json_schema, load_config
from game_rl.config.schema import RunConfig
from game_rl.config.strict_model import flat
from game_rl.experiments.forecast.experiment_forecast import experiment_preflight
from game_rl.experiments.study.study_forecast import study_preflight
from game_rl.games.definition import load_game
from game_rl.preflight.preflight import preflight
from game_rl.system.machine import detect_machine, parse_machine

CONFIGS = Path(__file__).parents[1] / "configs"
EVERY = sorted(CONFIGS.glob("*.yaml"))
POPULATIONS = [path for path in EVERY if config_kind(path) == "population"]
MIXTURES = [path for path in EVERY if config_kind(path) == "mixture"]
STUDIES = [path for path in EVERY if config_kind(path) == "study"]
SHIPPED = [path for path in EVERY if config_kind(path) is None]
SCHEMA = CONFIGS / "run.schema.json"
POPULATION_SCHEMA = CONFIGS / "population.schema.json"
MIXTURE_SCHEMA = CONFIGS / "mixture.schema.json"
STUDY_SCHEMA = CONFIGS / "study.schema.json"


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.stem)
def test_a_shipped_config_loads(path: Path) -> None:
    config = load_config(path)
    assert config.run_dir == Path("runs") / path.stem


@pytest.mark.parametrize("path", POPULATIONS, ids=lambda path: path.stem)
def test_a_shipped_population_loads_and_fits_a_small_machine(path: Path) -> None:
    population = load_experiment(path)
    assert population.config.run_dir == Path("runs") / path.stem
    machine = parse_machine("ram=8GiB,vram=0,disk=20GiB,cpus=2", here=detect_machine(Path()))
    report = experiment_preflight(population, load_game(population.run.game), machine)
    assert (report.verdict, report.slots) == ("fits", 2)


@pytest.mark.parametrize("path", MIXTURES, ids=lambda path: path.stem)
def test_a_shipped_mixture_loads_and_fits_a_small_machine(path: Path) -> None:
    mixture = load_experiment(path)
    assert mixture.config.run_dir == Path("runs") / path.stem
    machine = parse_machine("ram=8GiB,vram=0,disk=20GiB,cpus=2", here=detect_machine(Path()))
    report = experiment_preflight(mixture, load_game(mixture.run.game), machine)
    at_once = mixture.config.members if mixture.config.is_live else 2
    assert (report.verdict, report.slots) == ("fits", at_once)


@pytest.mark.parametrize("path", EVERY, ids=lambda path: path.stem)
def test_the_first_line_points_an_editor_at_the_schema(path: Path) -> None:
    first = path.read_text(encoding="utf-8").splitlines()[0]
    schema = POPULATION_SCHEMA if path in POPULATIONS else SCHEMA
    schema = STUDY_SCHEMA if path in STUDIES else schema
    schema = MIXTURE_SCHEMA if path in MIXTURES else schema
    assert first == f"# yaml-language-server: $schema={schema.name}"


def test_the_schema_of_populations_is_that_of_the_model() -> None:
    assert POPULATION_SCHEMA.read_text(encoding="utf-8") == json_schema(PopulationConfig), (
        "regenerate it: game-rl schema --population > configs/population.schema.json"
    )


def test_the_schema_of_mixtures_is_that_of_the_model() -> None:
    assert MIXTURE_SCHEMA.read_text(encoding="utf-8") == json_schema(MixtureConfig), (
        "regenerate it: game-rl schema --mixture > configs/mixture.schema.json"
    )


def test_the_schema_of_studies_is_that_of_the_model() -> None:
    assert STUDY_SCHEMA.read_text(encoding="utf-8") == json_schema(StudyConfig), (
        "regenerate it: game-rl schema --study > configs/study.schema.json"
    )


@pytest.mark.parametrize("path", STUDIES, ids=lambda path: path.stem)
def test_a_shipped_study_loads_and_fits_a_small_machine(path: Path) -> None:
    study = load_study(path)
    assert study.config.run_dir == Path("runs") / path.stem
    shares = {arm.timesteps / study.config.budget.timesteps for arm in study.arms.values()}
    assert 0.99 < min(shares) == max(shares) <= 1  # every arm has the same share
    machine = parse_machine("ram=8GiB,vram=0,disk=20GiB,cpus=2", here=detect_machine(Path()))
    report = study_preflight(study, machine)
    assert (report.verdict, report.slots) == ("fits", 2)


def test_the_population_of_the_documents_is_shipped() -> None:
    config = load_experiment(CONFIGS / "population_16x25.yaml").config
    assert (config.members, config.generations) == (16, 25)
    assert config.timesteps_per_generation == 2_048


def test_the_schema_is_that_of_the_model() -> None:
    assert SCHEMA.read_text(encoding="utf-8") == json_schema(RunConfig), (
        "regenerate it: game-rl schema > configs/run.schema.json"
    )


def test_the_default_run_and_the_large_one_are_shipped() -> None:
    assert {"duel_ppo", "fighter_32gb"} <= {path.stem for path in SHIPPED}


def test_the_large_run_is_the_one_of_the_memory_analysis() -> None:
    config = load_config(CONFIGS / "fighter_32gb.yaml")
    assert (config.env.n_envs, config.env.frame_stack) == (2, 4)
    assert (config.env.observation.size, config.env.observation.colour) == ("full", "rgb")
    ppo = config.algorithm
    assert (ppo.n_steps, ppo.batch_size, ppo.n_epochs) == (8_192, 2_048, 10)
    assert config.rollout_timesteps == 16_384
    assert config.total_timesteps == 10_000_000


def test_the_tuned_large_run_takes_all_advice_and_changes_nothing_else() -> None:
    plain, tuned = (load_config(CONFIGS / f"fighter_32gb{name}.yaml") for name in ("", "_tuned"))
    machine = parse_machine("ram=32GiB,vram=16GiB,disk=250GiB,cpus=8", here=detect_machine(Path()))
    report = preflight(tuned, load_game(tuned.game), machine)
    assert (report.verdict, report.findings) == ("fits", ())
    assert preflight(plain, load_game(plain.game), machine).findings
    old, new = flat(plain.model_dump()), flat(tuned.model_dump())
    assert {key for key in old if old[key] != new[key]} == {
        "run_dir",
        "env.n_envs",
        "env.observation.colour",
        "algorithm.n_steps",
    }
