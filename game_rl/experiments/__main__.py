"""Brings an experiment to its end, as `python -m game_rl.experiments REQUEST.json`.

It is the one job that is an experiment itself: an arm and seed of a study.
"""

import math
import sys

from game_rl.errors import UsageError
from game_rl.experiments.train_experiment import ExperimentCommand, finish_experiment
from game_rl.jobs.requests import FinishRequest, named_request
from game_rl.system.output import exit_code_of, write_every_character
from game_rl.system.processes import end_with_parent
from game_rl.system.stop_request import StopRequest, stopping_on_signals


def main() -> int:
    """Carry out the request, and return the exit code of `game-rl`."""
    end_with_parent()
    write_every_character()
    return exit_code_of(_carry_out, trains=True)


def _carry_out() -> int:
    request, stop = named_request(sys.argv[1:]), StopRequest(math.inf)
    if not isinstance(request, FinishRequest):
        raise UsageError(f"carry out the job {request.job} with python -m game_rl.jobs")
    with stopping_on_signals(stop):
        finish_experiment(
            request.run,
            ExperimentCommand(stop=stop, force=True),
            episodes=request.episodes,
            seed=request.seed,
            result=request.result,
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
