"""Carries out the job of a request file, as `python -m game_rl.jobs REQUEST.json`.

It prints nothing but why it failed. What happens is in the `events.jsonl` of its run.
"""

import sys

from game_rl.jobs.member_jobs import (
    compare_actions,
    copy_run,
    finish_run,
    play_checkpoint,
    run_stretch,
)
from game_rl.jobs.requests import (
    CompareActionsRequest,
    CopyRequest,
    FinishRequest,
    PlayRequest,
    StretchRequest,
    named_request,
)
from game_rl.system.output import exit_code_of, write_every_character
from game_rl.system.processes import end_with_parent
from game_rl.system.stop_request import StopRequest, stopping_on_signals


def main() -> int:
    """Carry out one job, and return the exit code of `game-rl`."""
    end_with_parent()
    write_every_character()
    return exit_code_of(_carry_out, trains=True)


def _carry_out() -> int:
    match named_request(sys.argv[1:]):
        case StretchRequest() as request:
            with stopping_on_signals(stop := StopRequest()):
                run_stretch(request, stop)
        case FinishRequest() as request:
            with stopping_on_signals(stop := StopRequest()):
                finish_run(request, stop)
        case PlayRequest() as request:
            play_checkpoint(request)
        case CopyRequest() as request:
            copy_run(request)
        case CompareActionsRequest() as request:
            compare_actions(request)
    return 0


if __name__ == "__main__":
    sys.exit(main())
