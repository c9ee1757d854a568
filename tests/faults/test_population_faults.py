import pytest

from tests.faults import population_faults


@pytest.mark.slow
@pytest.mark.parametrize("kind", population_faults.KINDS)
def test_a_few_kills_of_each_kind_lose_nothing(
    kind: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.argv", ["population_faults", "--kills", "3", "--only", kind])
    assert population_faults.main() == 0, capsys.readouterr().out
