"""A mixture of real members and a real learner, killed and not."""

import json
from pathlib import Path

import pytest

from game_rl.cli.main import main
from game_rl.events import StretchEnded
from game_rl.events.event_log import read_events, read_experiment_events
from game_rl.experiments.experiment_dir import ExperimentDir
from game_rl.experiments.records import GenerationRecord, read_record
from game_rl.files.run_dir import RunDir
from game_rl.lake.lake import Lake
from tests.faults.live_books import wrong_books
from tests.faults.mixture_files import write_live_mixture, write_mixture


def weights(folder: ExperimentDir, number: int) -> list[str | None]:
    found = read_record(folder.generation(number).record, GenerationRecord)
    assert found is not None
    return [member.weights_sha256 for member in found.members]


@pytest.mark.soak
def test_two_mixtures_of_one_config_learn_the_same_and_the_champion_plays(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    one, two = (ExperimentDir(tmp_path / name) for name in ("one", "two"))
    for folder in (one, two):
        assert main(["train", "--config", str(write_mixture(tmp_path, folder.root))]) == 0
    assert [weights(one, 1), weights(one, 2)] == [weights(two, 1), weights(two, 2)]
    assert len(set(weights(one, 2))) == 3
    for number in (1, 2):
        ours, theirs = (
            read_record(d.generation(number).record, GenerationRecord) for d in (one, two)
        )
        assert ours is not None
        assert theirs is not None
        assert ours.differences == theirs.differences
        assert ours.differing_members is not None
        assert ours.differing_learner is not None

    lake = Lake.open(one.root / "lake")
    assert lake.view().streams == sorted(
        one.member(name).identity().id for name in ("00", "01", "00.g0001", "01.g0001")
    )
    lineage = json.loads((one.member("00.g0001").lineage).read_text(encoding="utf-8"))
    assert lineage["began_at"] == 0
    for arguments in (
        ["evaluate", str(one.root), "--episodes", "2"],
        ["status", str(one.root)],
        ["lineage", str(one.root)],
    ):
        assert main(arguments) == 0, capsys.readouterr().err
    printed = capsys.readouterr().out
    assert "at the end of round 2, of the same 512 observations, two members act" in printed
    assert "learner.g0002 has drawn " in printed

    fork = tmp_path / "fork"
    changes = [f"run_dir={fork}", "total_timesteps=160", "lake=null"]
    overrides = [word for change in changes for word in ("--set", change)]
    assert main(["train", "--fork", str(one.root), *overrides]) == 0, capsys.readouterr().err
    champion = ExperimentDir(one.root).champion
    assert json.loads((fork / "run.json").read_text(encoding="utf-8"))["parent"]["id"] == (
        RunDir(champion).identity().id
    )


@pytest.mark.slow
def test_a_live_learner_draws_from_members_that_play_meanwhile(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = ExperimentDir(tmp_path / "live")
    assert main(["train", "--config", str(write_live_mixture(tmp_path, folder.root))]) == 0
    assert list(wrong_books(folder)) == []
    begun = read_events(RunDir(folder.member("learner").root))[0]
    ended = (
        event for event in read_experiment_events(folder.events) if isinstance(event, StretchEnded)
    )
    assert begun.time < min(event.time for event in ended)
    streams = [folder.member(name).identity().id for name in ("00", "01")]
    view = Lake.open(folder.root / "lake").view()
    assert view.streams == streams
    assert len(view) == 2 * 1_280
    for command in ("status", "lineage"):
        assert main([command, str(folder.root)]) == 0
    printed = capsys.readouterr().out
    assert "learner follows the Lake" in printed
    assert "at the end, of the same 512 observations, two members act differently" in printed
    assert "learner has drawn " in printed
