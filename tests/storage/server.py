"""An S3 server in a process of its own: `python -m tests.storage.server` prints its address."""

import logging
import os
import subprocess
import sys
import threading
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager

from moto.server import ThreadedMotoServer

BUCKET = "bucket"
KEY, SECRET = "AKIAPLANTEDPLANTED01", "planted/secret+0123456789abcdefghijklmnop"


def s3_environment(endpoint: str) -> dict[str, str]:
    """What a user sets to reach it."""
    return {
        "AWS_ENDPOINT_URL": endpoint,
        "AWS_ACCESS_KEY_ID": KEY,
        "AWS_SECRET_ACCESS_KEY": SECRET,
        "AWS_DEFAULT_REGION": "us-east-1",
    }


@contextmanager
def s3_server(*, niceness: int = 0) -> Iterator[str]:
    """Its address, with an empty bucket."""
    process = subprocess.Popen(
        ["nice", "-n", str(niceness), sys.executable, "-W", "ignore", "-m", "tests.storage.server"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        encoding="utf-8",
    )
    try:
        assert process.stdout is not None
        endpoint = process.stdout.readline().strip()
        make = urllib.request.Request(f"{endpoint}/{BUCKET}", method="PUT")  # noqa: S310 - http
        urllib.request.urlopen(make).close()  # noqa: S310 - http
        yield endpoint
    finally:
        process.kill()
        process.communicate()


def main() -> None:
    logging.getLogger("werkzeug").setLevel(logging.CRITICAL)
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    sys.stdout.write(f"http://{host}:{port}\n")
    sys.stdout.flush()
    threading.Thread(target=_leave_with_parent, daemon=True).start()
    threading.Event().wait()


def _leave_with_parent() -> None:
    sys.stdin.read()
    os._exit(0)


if __name__ == "__main__":
    main()
