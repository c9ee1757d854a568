"""The training's side of Weights & Biases: starting, telling and ending the process that sends.

This module never imports wandb, and waits for it only at the end, for a bounded time.
"""

import json
import os
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from shlex import quote

from game_rl.config.schema import RunConfig
from game_rl.errors import Interrupted, UsageError
from game_rl.events import Begun, CheckpointSaved, Evaluated, Event, Recorded, Resumed
from game_rl.events.event_log import EventLog
from game_rl.files.run_dir import EXPERIMENT_VARIABLE, RunDir
from game_rl.loggers.wandb_settings import WANDB_PROCESS, WandbSettings, journal_rows
from game_rl.system.child_process import LineProcess, started
from game_rl.system.packages import check_extra
from game_rl.system.stop_request import StopRequest

_CONNECTED = "connected"
_WAIT_S = 30.0  # at the end of a run
_MEMBER_WAIT_S = 5.0  # at the end of each stretch of a member, without a connection
_CHECK_TIMEOUT_S = 60.0
_LOOK_EVERY_S = 0.1
_READ_WITHIN_S = 1.0


def check_wandb(config: RunConfig) -> None:
    """Check that what the config's `logging.wandb` needs is there, before a run begins.

    A member's process does not look for a login: its experiment has done so.

    Raises:
        UsageError: the package is missing, or nobody is logged in.
    """
    wandb = config.logging.wandb
    if wandb is None:
        return
    check_extra("wandb", "logging.wandb", way_out="train without it: logging.wandb=null")
    is_member = EXPERIMENT_VARIABLE in os.environ
    if wandb.mode == "online" and not is_member and not _is_logged_in():
        raise UsageError(
            "logging.wandb: nobody is logged in to Weights & Biases here; run `wandb login`, set "
            "WANDB_API_KEY, or write to a file for later with logging.wandb.mode=offline"
        )


@cache
def _is_logged_in() -> bool:
    check = started(WANDB_PROCESS, "check")
    try:
        check.communicate(timeout=_CHECK_TIMEOUT_S)
    except subprocess.TimeoutExpired:
        check.kill()
        check.communicate()
    return check.returncode == 0


def wandb_settings(config: RunConfig, run_dir: RunDir, *, is_exact: bool) -> WandbSettings | None:
    """Return the settings of the process, or None if the config does not ask for it.

    A member's group is the name of its experiment, unless the config names another.
    """
    wandb = config.logging.wandb
    if wandb is None:
        return None
    experiment = os.environ.get(EXPERIMENT_VARIABLE)
    group = wandb.group or (None if experiment is None else Path(experiment).name)
    return WandbSettings(
        run_dir=run_dir.root.absolute(),
        run=run_dir.identity().id,
        name=run_dir.root.name if group is None else f"{group} {run_dir.root.name}",
        project=wandb.project,
        entity=wandb.entity,
        group=group,
        mode=wandb.mode,
        config=config.model_dump(mode="json"),
        rows=journal_rows(run_dir.wandb_rows),
        is_exact=is_exact,
    )


class WandbLog:
    """Has a process send a run's curves, config and clips.

    It is a Listener: the process starts when the run begins or resumes.
    """

    def __init__(self, config: RunConfig, run_dir: RunDir, events: EventLog) -> None:
        self._config = config
        self._run_dir = run_dir
        self._events = events
        self._process: LineProcess | None = None
        self._has_warned = False
        self._is_connected = False

    def on_event(self, event: Event) -> None:
        match event:
            case Begun():
                self._start(is_exact=False)
            case Resumed():
                others = (event.changes, event.not_restored, event.other_code, event.set_aside)
                self._start(is_exact=not any(others))
            case CheckpointSaved():
                self._revive()
            case Recorded() if self._process is not None:
                self._process.tell(f"clip {event.timesteps} {Path(event.path).absolute()}")
            case Evaluated(is_final=True) if self._process is not None:
                self._process.tell(f"summary {json.dumps(_summary(event))}")

    def finish(self, wait_s: float) -> None:
        """Have the rest sent, for at most `wait_s`, and end the process."""
        if self._process is None:
            return
        self._process.tell("finish")
        if EXPERIMENT_VARIABLE in os.environ and not self._is_connected:
            wait_s = min(wait_s, _MEMBER_WAIT_S)  # the member's next stretch sends its rows
        end_s = time.monotonic() + wait_s
        with suppress(KeyboardInterrupt):
            while self._process.code is None and time.monotonic() < end_s:
                time.sleep(_LOOK_EVERY_S)
        has_ended = self._process.code is not None
        self._process.end(heard_within_s=_READ_WITHIN_S)
        if not has_ended:
            folder = quote(str(self._run_dir.root / "wandb"))
            self._events.warn(
                "Weights & Biases does not have all curves yet; `wandb sync` with the newest "
                f"folder in {folder} sends the rest"
            )
        elif self._process.code and not self._has_warned:
            self._events.warn(
                "the process that sends to Weights & Biases has died; the curves are in wandb.jsonl"
            )

    def _start(self, *, is_exact: bool) -> None:
        settings = wandb_settings(self._config, self._run_dir, is_exact=is_exact)
        if settings is None or self._process is not None:
            return
        self._process = LineProcess(WANDB_PROCESS, "run", settings.model_dump_json(), self._hear)

    def _revive(self) -> None:
        """Replace a process that was killed, for example by the kernel's out-of-memory killer."""
        if self._process is not None and (self._process.code or 0) < 0:
            self._events.warn("the process of Weights & Biases was killed; a new one continues")
            self._process.end(heard_within_s=_READ_WITHIN_S)
            self._process = None
            self._start(is_exact=True)

    def _hear(self, line: str) -> None:
        if line.strip() == _CONNECTED:
            self._is_connected = True
        else:
            self._has_warned = True
            with suppress(OSError):  # a full disk ends the training elsewhere
                self._events.warn(line.strip())


@contextmanager
def logging_to_wandb(
    config: RunConfig, run_dir: RunDir, events: EventLog, stop: StopRequest
) -> Iterator[None]:
    """Send what is logged inside the block, if the config asks for it.

    A run that was stopped waits no longer than its deadline for the rest.
    """
    if config.logging.wandb is None:
        yield
        return
    log = WandbLog(config, run_dir, events)
    wait_s = _WAIT_S
    events.add_listener(log.on_event)
    try:
        yield
    except (Interrupted, KeyboardInterrupt):
        wait_s = min(wait_s, stop.deadline_s)
        raise
    finally:
        log.finish(wait_s)


def _summary(event: Evaluated) -> dict[str, float | None]:
    values = {
        "final/mean_reward": event.mean_reward,
        "final/success_rate": event.success_rate,
        "final/mean_ep_length": event.mean_length,
    }
    for name, result in (event.by_start_state or {}).items():
        values[f"final/success_rate/{name}"] = result.success_rate
    return values
