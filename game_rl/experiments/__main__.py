"""Brings an experiment to its end, as `python -m game_rl.experiments REQUEST.json`.

It is the one job that is an experiment itself: an arm and seed of a study.
"""

import math
import sys

from game_rl.errors import UsageError
from game_rl.experiments.jobs.job_files import FinishRequest, JobRequest, carry_out_named
from game_rl.experiments.train_experiment import ExperimentCommand, finish_experiment
from game_rl.system.stop_request import StopRequest, stopping_on_signals


def main() -> int:
    return carry_out_named(_carry_out)


def _carry_out(request: JobRequest) -> None:
    stop = StopRequest(math.inf)
    if not isinstance(request, FinishRequest):
        raise UsageError(f"carry out the job {request.job} with python -m game_rl.experiments.jobs")
    with stopping_on_signals(stop):
        finish_experiment(request, ExperimentCommand(stop=stop, force=True))


if __name__ == "__main__":
    sys.exit(main())
