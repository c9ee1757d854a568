"""What kind of thing a config file describes, before the rest of it is looked at."""

import contextlib
import json
import os
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic import Field

from game_rl.config.algorithms import PPOConfig
from game_rl.config.loader import (
    KINDS,
    Document,
    config_kind,
    dump_config,
    game_path,
    json_schema,
    load_config,
    load_yaml_model,
    run_based_on,
)
from game_rl.config.schema import (
    EnvConfig,
    EvaluationConfig,
    GrowingLimit,
    ObservationConfig,
    RunConfig,
)
from game_rl.config.schema_guide import schema_guide
from game_rl.config.strict_model import StrictModel
from game_rl.config.values import LinearSchedule
from game_rl.errors import ConfigError

VALID = "game: duel\ntotal_timesteps: 400_000\nrun_dir: runs/test\n"
same_folder = settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)


def write(folder: Path, text: str) -> Path:
    path = folder / "run.yaml"
    path.write_text(text, encoding="utf-8")
    return path


def problem_lines(path: Path, *overrides: str) -> list[str]:
    with pytest.raises(ConfigError) as raised:
        load_config(path, overrides)
    return str(raised.value).splitlines()[1:]


# ---- what is written is what is read -------------------------------------------------------------


def test_numbers_may_be_written_as_people_write_them(tmp_path: Path) -> None:
    text = "total_timesteps: 1e6\nenv: {worker_timeout_s: 1_0}\nalgorithm: {learning_rate: 1e-3}\n"
    config = load_config(write(tmp_path, "game: duel\nrun_dir: x\n" + text))
    assert config.total_timesteps == 1_000_000
    assert config.env.worker_timeout_s == 10.0
    assert config.algorithm.learning_rate == 0.001


def test_overrides_win_over_the_file_and_later_ones_over_earlier(tmp_path: Path) -> None:
    path = write(tmp_path, VALID + "env:\n  n_envs: 2\nalgorithm:\n")
    overrides = ["env.n_envs=4", "env.n_envs=16", "algorithm.learning_rate={start: 1e-4, end: 0}"]
    config = load_config(path, [*overrides, "evaluation.episodes=7"])
    assert config.env.n_envs == 16
    assert config.algorithm.learning_rate == LinearSchedule(start=1e-4, end=0)
    assert config.evaluation.episodes == 7


def test_an_override_mends_what_is_wrong_in_the_file(tmp_path: Path) -> None:
    path = write(tmp_path, VALID + "env: {n_envs: many}\n")
    assert load_config(path, ["env.n_envs=2"]).env.n_envs == 2


def test_a_game_file_is_found_beside_the_config_that_names_it(tmp_path: Path) -> None:
    path = write(tmp_path, VALID.replace("duel", "games/mine/game.yaml"))
    config = load_config(path)
    assert config == load_config(str(path))
    assert config.game == str(tmp_path / "games/mine/game.yaml")
    (tmp_path / "elsewhere").mkdir()
    assert load_config(write(tmp_path / "elsewhere", dump_config(config))) == config


def test_a_game_file_named_by_an_override_is_found_where_it_was_typed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write(tmp_path, VALID.replace("duel", "games/mine/game.yaml"))
    here = tmp_path / "here"
    here.mkdir()
    monkeypatch.chdir(here)
    assert load_config(path, ["game=my/other.yaml"]).game == str(here / "my/other.yaml")
    assert load_config(path, ["game=../my.yaml"]).game == str(here / "../my.yaml")
    assert load_config(path, ["game=beacon"]).game == "beacon"
    assert load_config(path, ["seed=1"]).game == str(tmp_path / "games/mine/game.yaml")


@pytest.mark.parametrize(
    ("game", "found"),
    [
        ("duel", None),
        ("mine.yaml", Path("/configs/mine.yaml")),
        ("../mine", Path("/configs/../mine")),
        ("/games/mine.yaml", Path("/games/mine.yaml")),
        ("~/mine.yaml", Path.home() / "mine.yaml"),
    ],
)
def test_a_game_with_a_slash_or_a_suffix_is_a_path(game: str, found: Path | None) -> None:
    assert game_path(game, relative_to=Path("/configs")) == found


def schedules() -> st.SearchStrategy[Any]:
    number = st.floats(1e-6, 1)
    return number | st.builds(LinearSchedule, start=number, end=st.floats(0, 1))


@st.composite
def run_configs(draw: st.DrawFn) -> RunConfig:
    n_envs, batch, batches = draw(st.integers(1, 64)), draw(st.integers(2, 64)), 3
    least = n_envs * batch * batches
    env = EnvConfig(
        n_envs=n_envs,
        n_workers=draw(st.none() | st.integers(1, n_envs)),
        max_episode_timesteps=draw(
            st.integers(1, 10**12)
            | st.builds(
                GrowingLimit,
                start=st.integers(1, 10**6),
                add=st.integers(1, 10**12),
                per=texts(),
                most=st.integers(10**6, 10**12),
            )
        ),
        start_states=draw(
            st.none()
            | st.lists(texts(), min_size=1).map(tuple)
            | st.dictionaries(texts(), st.floats(1e-300, 1_000_000), min_size=1)
        ),
        observation=draw(st.builds(ObservationConfig)),
        worker_timeout_s=draw(st.floats(0.001, 86_400)),
    )
    algorithm = PPOConfig(
        n_steps=batch * batches,
        batch_size=batch,
        learning_rate=draw(schedules()),
        clip_range_vf=draw(st.none() | schedules()),
        ent_coef=draw(st.floats(0, 1e300)),
        target_kl=draw(st.none() | st.floats(1e-300, 1)),
    )
    return RunConfig(
        game=draw(texts().filter(lambda t: game_path(t, relative_to=Path()) is None)),
        seed=draw(st.integers(0, 2**31 - 1)),
        total_timesteps=draw(st.integers(least, 10**12)),
        run_dir=draw(texts().filter(lambda text: Path(text).name and text[0] != "~")),
        device=draw(st.sampled_from(["auto", "cpu", "cuda", "cuda:3"])),
        env=env,
        algorithm=algorithm,
        evaluation=EvaluationConfig(every_timesteps=draw(st.integers(least, 10**12))),
    )


def texts() -> st.SearchStrategy[str]:
    tricky = [
        "1e6",
        "0x10",
        "yes",
        "null",
        "~",
        ".inf",
        "8",
        "a: b",
        "# no",
        "- x",
        "'",
        "é",
        "=",
        "<<",
    ]
    characters = st.characters(min_codepoint=32, exclude_categories=["Cs"])
    return st.sampled_from(tricky) | st.text(characters, min_size=1, max_size=20)


@same_folder
@given(config=run_configs())
def test_every_config_is_read_back_from_its_dump(config: RunConfig, tmp_path: Path) -> None:
    assert load_yaml_model(write(tmp_path, dump_config(config)), RunConfig) == config


def test_an_item_that_a_list_does_not_have_is_refused(tmp_path: Path) -> None:
    path = write(tmp_path, VALID + "env: {start_states: [a]}\n")
    assert load_config(path, ["env.start_states.0=b"]).env.start_states == ("b",)
    (line,) = problem_lines(path, "env.start_states.1=b")
    assert "--set env.start_states.1=b  env.start_states has 1 items" in line


def test_weights_replace_those_below_and_an_override_changes_one(tmp_path: Path) -> None:
    write(tmp_path, VALID + "env: {n_envs: 3, start_states: {shore: 1, caves: 3}}\n")
    (tmp_path / "plan.yaml").write_text(
        "member: {config: run.yaml, env: {frame_skip: 2, start_states: {island: 2}}}\n",
        encoding="utf-8",
    )
    source = Document(tmp_path / "plan.yaml", ConfigError)
    section = source.tree()[0].nearest(("member",))
    env = run_based_on(source, section, ()).env
    assert (env.n_envs, env.frame_skip, env.start_states) == (3, 2, {"island": 2.0})
    path = tmp_path / "run.yaml"
    weights = load_config(path, ["env.start_states.caves=5"]).env.start_states
    assert weights == {"shore": 1.0, "caves": 5.0}
    assert load_config(path, ["env.start_states={caves: 5}"]).env.start_states == {"caves": 5.0}
    assert load_config(path, ["env.start_states=[caves]"]).env.start_states == ("caves",)


# ---- files that are none -------------------------------------------------------------------------


def refused(path: Path) -> str:
    with pytest.raises(ConfigError) as raised:
        load_config(path)
    return str(raised.value)


def test_a_missing_file_names_the_one_that_was_meant(tmp_path: Path) -> None:
    write(tmp_path, VALID)
    told = refused(tmp_path / "runs.yaml")
    assert f"no such file; did you mean {tmp_path / 'run.yaml'}? (in {tmp_path}" in told


def test_a_missing_folder_is_no_trouble(tmp_path: Path) -> None:
    assert "no such file; check the name" in refused(tmp_path / "no" / "run.yaml")


def test_a_folder_lists_the_configs_in_it(tmp_path: Path) -> None:
    write(tmp_path, VALID)
    assert "is a folder, name a file in it" in refused(tmp_path)
    assert "run.yaml" in refused(tmp_path)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "run.yaml")
    assert "is not a regular file" in refused(tmp_path / "run.yaml")


def test_a_file_that_is_too_large_is_not_read(tmp_path: Path) -> None:
    assert "larger than 256 KiB" in refused(write(tmp_path, "#" * 300_000))


@pytest.mark.parametrize("name", ["a\0b.yaml", "x" * 300 + ".yaml"])
def test_a_name_that_no_file_can_have_is_told(name: str, tmp_path: Path) -> None:
    assert refused(tmp_path / name)


def test_a_byte_order_mark_is_skipped(tmp_path: Path) -> None:
    path = tmp_path / "run.yaml"
    path.write_bytes(b"\xef\xbb\xbf" + VALID.encode())
    assert load_config(path).game == "duel"


def test_a_run_dir_that_is_or_is_below_a_file_is_refused(tmp_path: Path) -> None:
    taken = tmp_path / "taken"
    taken.touch()
    for run_dir in (taken, taken / "run"):
        path = write(tmp_path, VALID.replace("runs/test", str(run_dir)))
        (line,) = problem_lines(path)
        assert f"line 3  run_dir: {taken} is a file" in line


def test_a_run_dir_with_too_long_a_name_is_refused(tmp_path: Path) -> None:
    (line,) = problem_lines(write(tmp_path, VALID), f"run_dir={'x' * 300}")
    assert "run_dir" in line


@same_folder
@given(content=st.binary() | st.text().map(lambda text: text.encode("utf-8", "surrogatepass")))
def test_any_bytes_are_a_config_or_a_config_error(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "run.yaml"
    path.write_bytes(content)
    with contextlib.suppress(ConfigError):
        assert isinstance(load_config(path), RunConfig)


def all_keys() -> list[tuple[str, ...]]:
    guide = schema_guide(RunConfig)
    top = [(name,) for name in guide.keys(())]
    return top + [(*key, name) for key in top for name in guide.keys(key)]


VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**20), 10**20)
    | st.floats()
    | st.text(max_size=5)
    | st.sampled_from(["auto", "ppo", "full", "rgb", "gif", "level_1", 1, 2, 256, 1000, 10**6]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["start", "end", "size", "x"]), inner, max_size=3)
    ),
    max_leaves=4,
)


@same_folder
@given(values=st.dictionaries(st.sampled_from(all_keys()), VALUES, max_size=6))
def test_any_values_at_any_keys_are_a_config_or_a_config_error(
    values: dict[tuple[str, ...], Any], tmp_path: Path
) -> None:
    tree: dict[str, Any] = {"game": "duel", "total_timesteps": 400_000, "run_dir": "runs/x"}
    for key, value in sorted(values.items()):
        section = tree.setdefault(key[0], {}) if len(key) > 1 else tree
        if isinstance(section, dict):
            section[key[-1]] = value
    path = write(tmp_path, yaml.safe_dump(tree))
    with contextlib.suppress(ConfigError):
        assert isinstance(load_config(path), RunConfig)


@same_folder
@given(override=st.text() | st.sampled_from(all_keys()).map(".".join).flatmap(
    lambda key: st.text(max_size=8).map(lambda value: f"{key}={value}")
))  # fmt: skip
def test_any_override_is_a_config_or_a_config_error(override: str, tmp_path: Path) -> None:
    path = write(tmp_path, VALID)
    with contextlib.suppress(ConfigError):
        assert isinstance(load_config(path, [override]), RunConfig)


class Cell(StrictModel):
    address: int
    value: int | None = Field(default=None, alias="is")


def test_fields_with_an_alias_are_dumped_as_they_are_written(tmp_path: Path) -> None:
    cell = load_yaml_model(write(tmp_path, "{address: 8, is: 3}"), Cell)
    assert cell.value == 3
    assert load_yaml_model(write(tmp_path, dump_config(cell)), Cell) == cell


# ---- the schema for editors ----------------------------------------------------------------------


def test_an_editor_takes_whole_numbers_with_underscores_for_numbers() -> None:
    seed = json.loads(json_schema(RunConfig))["properties"]["seed"]
    assert seed["type"] == ["integer", "string"]
    assert seed["pattern"] == "^[0-9]+(_[0-9]+)+$"
    assert seed["description"]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "x.yaml"


@pytest.mark.parametrize("kind", KINDS)
def test_a_file_is_of_the_kind_that_it_names(kind: str, file: Path) -> None:
    file.write_text(f"kind: {kind}\n", encoding="utf-8")
    assert config_kind(file) == kind


def test_a_file_without_kind_is_a_run(file: Path) -> None:
    file.write_text("game: duel\n", encoding="utf-8")
    assert config_kind(file) is None


def test_an_unknown_kind_is_refused(file: Path) -> None:
    file.write_text("kind: population\n", encoding="utf-8")
    with pytest.raises(ConfigError, match=r"found popular; allowed: population"):
        config_kind(file, ["kind=popular"])
