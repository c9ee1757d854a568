from pathlib import Path

import pytest

from game_rl.run_dir import RunDir, new_directory, write_atomic


def fail_half_way(directory: Path) -> None:
    (directory / "a").write_text("new")
    raise RuntimeError("half way")


def test_checkpoints_are_ordered_by_timestep_not_by_name(tmp_path: Path) -> None:
    run_dir = RunDir(tmp_path)
    for timesteps in (9, 100, 20):
        run_dir.checkpoint(timesteps).mkdir(parents=True)
    (run_dir.checkpoints / ".000000000200.tmp").mkdir()
    names = [int(path.name) for path in run_dir.checkpoints_newest_first()]
    assert names == [100, 20, 9]


def test_a_run_exists_once_its_config_does(tmp_path: Path) -> None:
    run_dir = RunDir(tmp_path / "run")
    assert not run_dir.exists()
    write_atomic(run_dir.config, "seed: 0\n")
    assert run_dir.exists()
    assert run_dir.size_bytes() == len("seed: 0\n")


def test_writing_replaces_and_leaves_no_temporary_file(tmp_path: Path) -> None:
    write_atomic(tmp_path / "a", "old")
    write_atomic(tmp_path / "a", b"new")
    assert (tmp_path / "a").read_bytes() == b"new"
    assert [p.name for p in tmp_path.iterdir()] == ["a"]


def test_a_directory_that_failed_half_way_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match="half way"), new_directory(tmp_path / "d"):
        fail_half_way(tmp_path / ".d.tmp")
    assert list(tmp_path.iterdir()) == []


def test_a_new_directory_takes_the_place_of_the_old_one_whole(tmp_path: Path) -> None:
    for content in ("a", "b"):
        with new_directory(tmp_path / "d") as directory:
            (directory / content).write_text(content)
    assert [p.name for p in tmp_path.iterdir()] == ["d"]
    assert [p.name for p in (tmp_path / "d").iterdir()] == ["b"]


def test_a_failure_leaves_the_old_directory_as_it_was(tmp_path: Path) -> None:
    with new_directory(tmp_path / "d") as directory:
        (directory / "a").write_text("old")
    with pytest.raises(RuntimeError, match="half way"), new_directory(tmp_path / "d"):
        fail_half_way(tmp_path / ".d.tmp")
    assert (tmp_path / "d" / "a").read_text() == "old"
