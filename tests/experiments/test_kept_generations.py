"""What an experiment lets go of: checkpoints, and what the members' Lake keeps for them."""

from pathlib import Path

from game_rl.config.experiments.population_config import KeepGenerationsConfig
from game_rl.experiments.experiment_dir import ExperimentDir
from game_rl.experiments.kept_generations import (
    checkpoints_bytes,
    forget_generations,
    link_checkpoint,
)
from game_rl.lake.lake import Lake
from game_rl.lake.mark import Mark
from tests.lake.plays import SCHEMA

RUNS = ("00", "01", "01.g0001", "learner.g0001", "learner.g0002")


def names_of(paths: list[Path], root: Path) -> set[str]:
    return {str(path.relative_to(root)) for path in paths}


def mixture_in_its_second_round(root: Path) -> tuple[ExperimentDir, dict[str, str]]:
    """01 was cloned over, and the learner of the second round is underway; ids by folder."""
    folder, ids = ExperimentDir(root), {}
    lake = Lake.create(folder.lake, SCHEMA)
    for number, name in enumerate(RUNS):
        run_dir = folder.member(name)
        run_dir.root.mkdir(parents=True)
        ids[name] = run_dir.identity(run_id=f"{number:032x}").id
        is_learner = name.startswith("learner")
        for timesteps in (32, 64):
            run_dir.checkpoint(timesteps).mkdir(parents=True)
            stream = f"reads-{ids[name]}" if is_learner else ids[name]
            lake.keep(f"{stream}.{timesteps:012d}", Mark((), {}))
        if is_learner:
            run_dir.offline.checkpoint(4).mkdir(parents=True)
            lake.keep(f"reads-{ids[name]}.offline-{4:012d}", Mark((), {}))
    return folder, ids


def test_older_checkpoints_go_and_those_before_the_first_timestep_with_them(tmp_path: Path) -> None:
    folder, _ = mixture_in_its_second_round(tmp_path)
    present = {"00", "01.g0001", "learner.g0001"}
    forget_generations(folder, KeepGenerationsConfig(), newest=1, present=present)
    left = [*folder.members.glob("*/checkpoints/*"), *folder.members.glob("*/offline/*")]
    assert names_of(left, folder.members) == {
        *(f"{name}/checkpoints/{64:012d}" for name in present),
        *(f"learner.g0002/checkpoints/{t:012d}" for t in (32, 64)),
        f"learner.g0002/offline/{4:012d}",
    }


def test_the_lake_keeps_nothing_for_runs_that_have_ended_and_learners_that_have_learned(
    tmp_path: Path,
) -> None:
    folder, ids = mixture_in_its_second_round(tmp_path)
    present = {"00", "01.g0001", "learner.g0001"}
    forget_generations(folder, KeepGenerationsConfig(), newest=1, present=present)
    kept = {path.stem.partition(".")[0] for path in (folder.lake / "pins").iterdir()}
    assert kept == {ids["00"], ids["01.g0001"], f"reads-{ids['learner.g0002']}"}


def test_the_size_of_all_checkpoints_counts_a_linked_file_once_and_nothing_else(
    tmp_path: Path,
) -> None:
    folder = ExperimentDir(tmp_path)
    for number, n_bytes in enumerate((1_000, 20)):
        checkpoint = folder.member(f"{number:02d}").checkpoint(64)
        checkpoint.mkdir(parents=True)
        (checkpoint / "policy.safetensors").write_bytes(bytes(n_bytes))
        (checkpoint / "manifest.json").write_bytes(bytes(3))
        folder.member(f"{number:02d}").events.write_bytes(bytes(500))
        link_checkpoint(checkpoint, folder.generation(1).checkpoint(number))
    folder.generation(1).record.write_bytes(bytes(70))
    assert checkpoints_bytes(folder) == 1_020 + 2 * 3
