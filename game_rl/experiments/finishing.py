"""Bring an experiment to its end and test its champion, for a study's pairs of arm and seed."""

import time
from pathlib import Path

from game_rl.config.experiments.experiment import load_experiment
from game_rl.errors import Interrupted, NobodyLeftError
from game_rl.executors.local import LocalExecutor
from game_rl.experiments.controller import read_state
from game_rl.experiments.experiment_dir import ExperimentDir
from game_rl.experiments.jobs import Jobs
from game_rl.experiments.plans.make_plan import make_plan
from game_rl.experiments.records import ChampionRecord, GenerationRecord, read_record
from game_rl.experiments.start import ExperimentCommand, resume_experiment
from game_rl.experiments.tasks import TaskRunner
from game_rl.jobs.results import Finished, Played, read_finished, write_finished
from game_rl.run_dir import RunDir, check_claim


def finish_experiment(
    root: Path, command: ExperimentCommand, *, episodes: int, seed: int, result: Path
) -> Finished:
    """Carry out the experiment at `root`, test its champion, and write the result.

    The champion is chosen by the experiment's own rule, on other episodes. An interrupted call can
    be repeated as often as needed and gives the same result; if there is one already, it is
    returned. If all members' weights become non-finite, that is a result, too.

    Args:
        episodes: number of the test's episodes.
        seed: seed of the test's episodes.
        result: file for the result.

    Raises:
        Interrupted: a signal stopped it; what was learned is saved.
        ExperimentError: the experiment cannot continue.
    """
    found = read_finished(result)
    if found is not None:
        return found
    check_claim(RunDir(root))
    started = time.monotonic()
    try:
        champion = resume_experiment(root, command)
        end = _tested(ExperimentDir(root), champion, command, episodes=episodes, seed=seed)
    except NobodyLeftError as error:
        end = Finished(failure="non_finite", text=str(error))
    return write_finished(result, end, root=root, seconds=time.monotonic() - started)


def _tested(
    folder: ExperimentDir,
    champion: ChampionRecord,
    command: ExperimentCommand,
    *,
    episodes: int,
    seed: int,
) -> Finished:
    plan = make_plan(folder, load_experiment(folder.config, is_saved=True))
    test = Jobs(folder, plan.rules.cpus_per_member).play(
        champion.number,
        champion.folder,
        champion.checkpoint,
        what="test",
        episodes=episodes,
        seed=seed,
    )
    try:
        with folder.locked(), LocalExecutor(slots=1) as executor:
            TaskRunner(executor, command.stop, lambda *_: None).run([test], lambda _: None)
    except Interrupted as reason:
        text = f"{reason}; the experiment is complete"
        raise Interrupted(text, exit_code=reason.exit_code) from None
    timesteps = int(champion.checkpoint)
    return Finished(
        timesteps=timesteps,
        policy_timesteps=timesteps,
        weights_sha256=_weights_sha256(folder, read_state(plan).generation, champion),
        played=Played.model_validate_json(test.result.read_bytes()),
    )


def _weights_sha256(folder: ExperimentDir, last: int, champion: ChampionRecord) -> str | None:
    record = read_record(folder.generation(last).record, GenerationRecord)
    assert record is not None
    return next(m.weights_sha256 for m in record.members if m.number == champion.number)
