from pathlib import Path

import pytest

from game_rl.config.experiments.executor_config import LocalExecutorConfig, RayExecutorConfig
from game_rl.errors import ConfigError
from tests.experiments.conftest import MakePopulation
from tests.experiments.conftest import make_population as make_population  # a fixture


def test_members_run_here_unless_the_file_says_otherwise(make_population: MakePopulation) -> None:
    assert make_population().config.executor == LocalExecutorConfig()
    assert make_population("x", "executor={parallel: 3}").config.executor == LocalExecutorConfig(
        parallel=3
    )


def test_ray_joins_no_cluster_unless_it_is_named(make_population: MakePopulation) -> None:
    executor = make_population("x", "executor={kind: ray}").config.executor
    assert isinstance(executor, RayExecutorConfig)
    assert executor.starts_cluster


@pytest.mark.parametrize(
    "address", ["local", "auto", "head:6379", "192.168.1.10:6379", "[fe80::1]:6379"]
)
def test_an_address_is_read(make_population: MakePopulation, address: str) -> None:
    executor = make_population("x", f"executor={{kind: ray, address: '{address}'}}").config.executor
    assert isinstance(executor, RayExecutorConfig)
    assert executor.address == address
    assert executor.starts_cluster == (address == "local")


@pytest.mark.parametrize(
    "address", ["", "head", "head:", "ray://head:10001", "me@head:6379", "a b:1", "head:6379/x"]
)
def test_no_address_is_refused_where_it_stands(
    make_population: MakePopulation, address: str
) -> None:
    with pytest.raises(ConfigError, match=r"executor\.address"):
        make_population("x", f"executor={{kind: ray, address: '{address}'}}")


def test_a_kind_that_does_not_exist_is_refused(make_population: MakePopulation) -> None:
    with pytest.raises(ConfigError, match="local"):
        make_population("x", "executor={kind: slurm}")


def test_one_and_a_half_gpus_are_refused(make_population: MakePopulation) -> None:
    for gpus in ("0", "0.5", "1", "2"):
        make_population("x", f"executor={{kind: ray, gpus_per_member: {gpus}}}")
    with pytest.raises(ConfigError, match="use 1"):
        make_population("x", "executor={kind: ray, gpus_per_member: 1.5}")


# ------------------------------------------------------------------ without shared files


_DQN = "member={{game: duel, algorithm: {{name: dqn, learning_starts: 100, {}}}}}"
_DISTANT = "executor={kind: ray, storage: 's3://bucket/folder/'}"


def test_storage_is_an_address_as_that_of_an_upload(make_population: MakePopulation) -> None:
    executor = make_population("x", _DISTANT).config.executor
    assert isinstance(executor, RayExecutorConfig)
    assert executor.storage == "s3://bucket/folder"
    assert "bucket" not in repr(executor)
    with pytest.raises(ConfigError) as refused:
        make_population("y", "executor={kind: ray, storage: 's3://me:planted@bucket/x'}")
    assert "no user, password, key" in str(refused.value)
    assert "planted" not in str(refused.value)


def test_local_members_reach_no_storage_and_the_way_out_is_named(
    make_population: MakePopulation,
) -> None:
    with pytest.raises(ConfigError, match=r"write executor: \{kind: ray, storage: \.\.\.\}"):
        make_population("x", "executor={storage: 's3://bucket/x'}")


@pytest.mark.parametrize(
    ("override", "said"),
    [
        ("member.lake={path: /elsewhere/lake}", "member.lake.path names /elsewhere/lake"),
        (
            _DQN.format("teacher: {run: /elsewhere/run}"),
            "member.algorithm.teacher names the run /elsewhere/run",
        ),
        (
            _DQN.format("learn_from: {lakes: [/elsewhere/lake]}"),
            "member.algorithm.learn_from names Lakes of other runs",
        ),
        ("member.upload={to: 's3://bucket/x'}", "remove member.upload"),
    ],
)
def test_what_a_member_on_its_own_disk_cannot_have_is_refused_with_the_way_out(
    make_population: MakePopulation, override: str, said: str
) -> None:
    overrides = (override, "mutation={}")
    make_population("shared", "executor={kind: ray}", *overrides)
    with pytest.raises(ConfigError, match=r"executor\.storage") as refused:
        make_population("distant", _DISTANT, *overrides)
    assert said in str(refused.value)


def test_a_class_in_the_current_folder_is_not_on_nodes_that_share_no_files(
    make_population: MakePopulation, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "own_parts.py").write_text("class Own: ...\n", encoding="utf-8")
    own = "member.callbacks=[own_parts:Own]"
    make_population("shared", "executor={kind: ray}", own)
    with pytest.raises(ConfigError, match=r"own_parts\.py, which nodes .* install it as a package"):
        make_population("x", _DISTANT, own)
    make_population("installed", _DISTANT, "member.env.wrappers=[gymnasium.wrappers:Autoreset]")
