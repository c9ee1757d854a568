import time
import warnings
from collections.abc import Iterator
from types import SimpleNamespace

import huggingface_hub.constants
import huggingface_hub.utils._http
import pytest

from tests.hub.hub_server import HubServer


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> Iterator[HubServer]:
    """A Hub of this test, which repeats requests without a pause."""
    # of huggingface_hub's call of its HTTP client; pytest restores the filters
    warnings.filterwarnings("ignore", message="Use 'content=<...>'", category=DeprecationWarning)
    for name in ("HF_TOKEN", "HUGGING_FACE_HUB_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HF_HUB_DISABLE_IMPLICIT_TOKEN", "0")
    no_pause = SimpleNamespace(sleep=lambda _: None, time=time.time)
    monkeypatch.setattr(huggingface_hub.utils._http, "time", no_pause)
    with HubServer() as server:
        monkeypatch.setattr(huggingface_hub.constants, "ENDPOINT", server.url)
        template = server.url + "/{repo_id}/resolve/{revision}/{filename}"
        monkeypatch.setattr(huggingface_hub.constants, "HUGGINGFACE_CO_URL_TEMPLATE", template)
        monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_DISABLE_XET", True)
        monkeypatch.setattr(huggingface_hub.constants, "HF_TOKEN_PATH", "/nonexistent/token")
        yield server
