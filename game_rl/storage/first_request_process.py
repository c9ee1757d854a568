"""The process that `first_request` starts: it reads an address, and prints what storage answers."""

import sys

from game_rl.errors import StorageError
from game_rl.storage.faults import StoreFault
from game_rl.storage.first_request import FirstAnswer
from game_rl.storage.object_store import ObjectStore

_TIMEOUT_S = 10.0


def main() -> int:
    sys.stdout.write(_answer(sys.stdin.readline().strip()).model_dump_json() + "\n")
    return 0


def _answer(address: str) -> FirstAnswer:
    try:
        ObjectStore(address, timeout_s=_TIMEOUT_S).folders("runs")  # one page of a listing
    except StoreFault as fault:
        return FirstAnswer(fault=fault.kind, text=str(fault))
    except StorageError as error:  # no address that can be used
        return FirstAnswer(fault="refused", text=str(error))
    return FirstAnswer()


if __name__ == "__main__":
    sys.exit(main())
