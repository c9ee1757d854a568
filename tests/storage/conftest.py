"""An S3 server, and the addresses to which tests upload."""

from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import pytest

from tests.storage.server import BUCKET, s3_environment, s3_server


@pytest.fixture(scope="session")
def s3_endpoint() -> Iterator[str]:
    with s3_server() as endpoint:
        yield endpoint


@pytest.fixture
def s3_address(s3_endpoint: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """Address of an empty folder in a bucket; the environment has the access to it."""
    for name, value in s3_environment(s3_endpoint).items():
        monkeypatch.setenv(name, value)
    return f"s3://{BUCKET}/{uuid4().hex}"


@pytest.fixture
def disk_address(tmp_path: Path) -> str:
    folder = tmp_path / "mounted disk"
    folder.mkdir()
    return f"file://{str(folder).replace(' ', '%20')}"


@pytest.fixture(params=["disk", pytest.param("s3", marks=pytest.mark.slow)])
def address(request: pytest.FixtureRequest) -> str:
    """One of a disk, or with the slow tests of S3, which test_object_store.py compares with it."""
    return str(request.getfixturevalue(f"{request.param}_address"))
