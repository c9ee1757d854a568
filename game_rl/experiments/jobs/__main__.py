"""Carries out the job of a request file, as `python -m game_rl.experiments.jobs REQUEST.json`.

It prints nothing but why it failed. What happens is in the `events.jsonl` of its run.
"""

import sys

from game_rl.experiments.jobs.job_files import (
    CompareActionsRequest,
    CopyRequest,
    FinishRequest,
    JobRequest,
    PlayRequest,
    StretchRequest,
    carry_out_named,
)
from game_rl.experiments.jobs.member_jobs import (
    compare_actions,
    copy_run,
    finish_run,
    play_checkpoint,
    run_stretch,
)
from game_rl.system.stop_request import StopRequest, stopping_on_signals


def main() -> int:
    return carry_out_named(_carry_out)


def _carry_out(request: JobRequest) -> None:
    match request:
        case StretchRequest():
            with stopping_on_signals(stop := StopRequest()):
                run_stretch(request, stop)
        case FinishRequest():
            with stopping_on_signals(stop := StopRequest()):
                finish_run(request, stop)
        case PlayRequest():
            play_checkpoint(request)
        case CopyRequest():
            copy_run(request)
        case CompareActionsRequest():
            compare_actions(request)


if __name__ == "__main__":
    sys.exit(main())
