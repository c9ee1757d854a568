"""One small request to an address, before a training begins that will upload to it.

A process of the upload's own asks, since no process that trains may load obstore.
"""

import subprocess
from contextlib import suppress

from pydantic import ValidationError

from game_rl.errors import UsageError
from game_rl.files.saved import Saved
from game_rl.storage.background import UPLOAD_PROCESS
from game_rl.storage.faults import PASSING_FAULTS, FaultKind, StoreFault
from game_rl.system.line_process import started

_LONGEST_S = 60.0
_ENDS_WITHIN_S = 1.0


class FirstAnswer(Saved):
    """What storage answered; no fault if it can be used."""

    fault: FaultKind | None = None
    text: str = ""


def ask_once(
    address: str,
    *,
    key: str = "upload.to",
    way_out: str = "to train without uploading, add --set upload=null",
) -> list[str]:
    """Ask storage whether it can be used, and return a warning if it cannot be reached.

    Args:
        key: key of the config that names the address.
        way_out: another way than to mend the storage.

    Raises:
        UsageError: there is no such bucket or folder, or it refuses access.
    """
    answer = _answer(address)
    if answer.fault is None:
        return []
    if answer.fault in PASSING_FAULTS:
        return [f"{answer.text}. The training begins nevertheless, and uploads as soon as it can"]
    raise UsageError(f"{key}: {answer.text}; {way_out}")


def _answer(address: str) -> FirstAnswer:
    process = started(UPLOAD_PROCESS, "first_request")
    try:
        output, _ = process.communicate(f"{address}\n", timeout=_LONGEST_S)
        return FirstAnswer.model_validate_json(output)
    except (subprocess.TimeoutExpired, ValidationError):
        return FirstAnswer(fault="slow", text=str(StoreFault("slow", address)))
    finally:
        process.kill()
        with suppress(subprocess.TimeoutExpired):  # a disk that hangs may hold it for ever
            process.wait(_ENDS_WITHIN_S)
