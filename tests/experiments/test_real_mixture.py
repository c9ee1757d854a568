"""A mixture of real members and a real learner, killed and not."""

import json
from pathlib import Path

import pytest

from game_rl.cli.main import main
from game_rl.experiments.experiment_dir import ExperimentDir
from game_rl.experiments.records import GenerationRecord, read_record
from game_rl.lake.lake import Lake

_MEMBER = """\
game: duel
total_timesteps: 1000
run_dir: x
device: cpu
env: {n_envs: 2, n_workers: 1, frame_skip: 8, max_episode_timesteps: 25, start_states: [level_1]}
algorithm:
  {name: pqn, n_steps: 16, batch_size: 16, n_epochs: 1, learning_rate: {start: 1.0e-3, end: 0}}
evaluation: {n_envs: 2}
checkpoints: {every_timesteps: 32, keep_last: 1}
"""
_LEARNER = """\
game: duel
total_timesteps: 1000
run_dir: x
device: cpu
env: {n_envs: 2, n_workers: 1, frame_skip: 8, max_episode_timesteps: 25, start_states: [level_1]}
algorithm:
  name: dqn
  replay: {capacity: 200}
  learning_starts: 8
  batch_size: 8
  layer_norm: channels
evaluation: {n_envs: 2}
checkpoints: {every_timesteps: 32, keep_last: 1}
"""
_MIXTURE = """\
kind: mixture
run_dir: PLACE
member: {config: member.yaml}
members: 2
rounds: 2
timesteps_per_round: 64
learner: {config: learner.yaml, learn_from: {own_share: 0.5}}
learner_per_round: {gradient_steps: 6, timesteps: 32}
clone: {only_if_better: false}
fitness: {episodes: 2, metric: mean_reward}
champion: {candidates: 2, episodes: 2}
"""


def write_mixture(folder: Path, place: Path) -> Path:
    (folder / "member.yaml").write_text(_MEMBER)
    (folder / "learner.yaml").write_text(_LEARNER)
    file = place.with_suffix(".yaml")
    file.write_text(_MIXTURE.replace("PLACE", str(place)))
    return file


def weights(folder: ExperimentDir, number: int) -> list[str | None]:
    found = read_record(folder.generation(number).record, GenerationRecord)
    assert found is not None
    return [member.weights_sha256 for member in found.members]


@pytest.mark.slow
def test_two_mixtures_of_one_config_learn_the_same_and_the_champion_plays(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    one, two = (ExperimentDir(tmp_path / name) for name in ("one", "two"))
    for folder in (one, two):
        assert main(["train", "--config", str(write_mixture(tmp_path, folder.root))]) == 0
    assert [weights(one, 1), weights(one, 2)] == [weights(two, 1), weights(two, 2)]
    assert len({sha for sha in weights(one, 2)}) == 3

    lake = Lake.open(one.root / "lake")
    assert lake.view().streams == sorted(
        one.member(name).identity().id for name in ("00", "01", "00.g0001", "01.g0001")
    )
    lineage = json.loads((one.member("00.g0001").lineage).read_text())
    assert lineage["began_at"] == 0
    for arguments in (
        ["evaluate", str(one.root), "--episodes", "2"],
        ["status", str(one.root)],
        ["lineage", str(one.root)],
    ):
        assert main(arguments) == 0, capsys.readouterr().err
