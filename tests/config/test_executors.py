import pytest

from game_rl.config.executors import LocalExecutorConfig, RayExecutorConfig
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
