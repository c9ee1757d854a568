import pytest

from tests.faults import study_faults
from tests.faults.population_faults import KINDS


@pytest.mark.soak
@pytest.mark.parametrize("kind", KINDS)
def test_a_few_kills_of_each_kind_change_no_result(
    kind: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.argv", ["study_faults", "--kills", "3", "--only", kind])
    assert study_faults.main() == 0, capsys.readouterr().out
