"""A process that was given up as lost does not overwrite the work of its replacement."""

from pathlib import Path

import pytest

from game_rl.config.loader import dump_config
from game_rl.errors import ExperimentError
from game_rl.events import CheckpointSaved, Event
from game_rl.jobs.member_jobs import run_stretch
from game_rl.run_dir import CLAIM_VARIABLE, RunDir, check_claim, take_claim, write_atomic
from game_rl.system.stop_request import StopRequest
from tests.tiny_run import MakeConfig


def test_each_claim_is_of_a_later_epoch_and_only_the_last_holds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_dir = RunDir(tmp_path)
    claims = [take_claim(run_dir) for _ in range(12)]
    assert [int(claim.partition("-")[0]) for claim in claims] == list(range(1, 13))
    for claim in claims[:-1]:
        monkeypatch.setenv(CLAIM_VARIABLE, claim)
        with pytest.raises(ExperimentError, match="a newer process"):
            check_claim(run_dir)
    monkeypatch.setenv(CLAIM_VARIABLE, claims[-1])
    check_claim(run_dir)


def test_two_who_take_the_same_epoch_do_not_both_hold(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two controllers that each believe they are the only one."""
    one, other = RunDir(tmp_path / "one"), RunDir(tmp_path / "other")
    for run_dir in (one, other):
        run_dir.root.mkdir()
    monkeypatch.setenv(CLAIM_VARIABLE, take_claim(one))
    take_claim(other)
    (other.root / "claim").replace(one.root / "claim")
    with pytest.raises(ExperimentError):
        check_claim(one)


def test_a_process_without_a_claim_is_not_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(CLAIM_VARIABLE, raising=False)
    take_claim(RunDir(tmp_path))
    check_claim(RunDir(tmp_path))


def test_a_member_whose_claim_is_taken_writes_no_further_checkpoint_and_no_result(
    make_config: MakeConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = make_config("member", "recording.episodes=0")
    run_dir = RunDir(config.run_dir)
    run_dir.root.mkdir()
    write_atomic(run_dir.config, dump_config(config))
    monkeypatch.setenv(CLAIM_VARIABLE, take_claim(run_dir))

    def take_at_first_checkpoint(event: Event) -> None:
        if isinstance(event, CheckpointSaved):
            take_claim(run_dir)

    result = run_dir.root.with_suffix(".json")
    with pytest.raises(ExperimentError, match="without writing"):
        run_stretch(
            run_dir.root,
            until=192,
            seed=1,
            result=result,
            stop=StopRequest(),
            listeners=[take_at_first_checkpoint],
        )
    assert [path.name for path in run_dir.checkpoints_newest_first()] == ["000000000064"]
    assert not result.exists()
