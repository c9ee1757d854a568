import pytest

from tests.faults import upload_faults


@pytest.mark.parametrize(
    "kind",
    [
        pytest.param(kind, marks=pytest.mark.slow if kind == "journal" else pytest.mark.soak)
        for kind in upload_faults.KINDS
    ],
)
def test_a_few_kills_and_faults_of_uploads_lose_nothing(
    kind: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    few = ["--kills", "4", "--faults", "7", "--runs", "1", "--points", "6", "--only", kind]
    monkeypatch.setattr("sys.argv", ["upload_faults", *few])
    for name in ("ENDPOINT_URL", "ACCESS_KEY_ID", "SECRET_ACCESS_KEY", "DEFAULT_REGION"):
        monkeypatch.setenv(f"AWS_{name}", "")  # restored after the test
    assert upload_faults.main() == 0, capsys.readouterr().out
