"""Upload a run, and die by SIGKILL at a chosen line of the journal.

    python -m tests.faults.faulty_uploader FAULT:NUMBER SETTINGS [PAUSE_S [PATIENCE_S]]

FAULT is `kill-before`, `kill-half` or `kill-after`, which strikes at line NUMBER that this process
writes, or `none`. SETTINGS are the settings that a training gives its uploader, as JSON. The number
of lines is printed at the end.
"""

import os
import signal
import sys

from game_rl.events import Event, Warned
from game_rl.storage import upload_process
from game_rl.storage.journal import Journal, Line
from game_rl.storage.upload_process import Bell, Uploading
from game_rl.storage.upload_settings import UploadSettings
from game_rl.storage.uploader import Uploader


class FaultyJournal(Journal):
    """A journal that counts its lines and kills the process at one of them."""

    fault, number = "none", 0
    n_lines = 0

    def write(self, line: Line) -> None:
        self.n_lines += 1
        is_here = self.n_lines == self.number
        if is_here and self.fault == "kill-before":
            _die()
        if is_here and self.fault == "kill-half":
            data = line.model_dump_json().encode()
            self._file.write(data[: len(data) // 2])
            _die()
        super().write(line)
        if is_here and self.fault == "kill-after":
            _die()


def _die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def _tell(event: Event) -> None:
    if isinstance(event, Warned):
        print("warning:", event.text, flush=True)


def main() -> int:
    fault, _, number = sys.argv[1].partition(":")
    settings = UploadSettings.model_validate_json(sys.argv[2])
    pauses = [float(text) for text in sys.argv[3:]]
    if pauses:
        upload_process._FIRST_PAUSE_S = upload_process._LONGEST_PAUSE_S = pauses[0]
        upload_process._LONGEST_PAUSE_AT_THE_END_S = pauses[0]
        upload_process._FIRST_PATIENCE_S = pauses[-1]
    with FaultyJournal(settings.run_dir / "upload.jsonl") as journal:
        journal.fault, journal.number = fault, int(number or 0)
        bell = Bell()
        bell.ring(is_ending=True)
        Uploading(Uploader(settings, journal, _tell), settings, _tell).run(bell)
    print("lines", journal.n_lines)
    return 0


if __name__ == "__main__":
    sys.exit(main())
