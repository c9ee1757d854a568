import pytest

from tests.faults import population_faults


@pytest.mark.soak
@pytest.mark.parametrize("kind", population_faults.KINDS + population_faults.RAY_KINDS)
def test_a_few_kills_of_each_kind_lose_nothing(
    kind: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.argv", ["population_faults", "--kills", "3", "--only", kind])
    assert population_faults.main() == 0, capsys.readouterr().out


@pytest.mark.soak
@pytest.mark.parametrize("kind", population_faults.KINDS)
@pytest.mark.parametrize("of", ["mixture", "erl"])
def test_what_has_a_learner_loses_nothing_either(
    of: str, kind: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["population_faults", "--kind", of, "--kills", "3", "--only", kind]
    monkeypatch.setattr("sys.argv", arguments)
    assert population_faults.main() == 0, capsys.readouterr().out


@pytest.mark.slow
def test_a_population_survives_a_kill_of_controller_and_member_at_once(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.argv", ["population_faults", "--kills", "1", "--only", "both"])
    assert population_faults.main() == 0, capsys.readouterr().out


@pytest.mark.slow
def test_a_population_whose_members_have_memories_survives_signals_and_kills(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["population_faults", "--kind", "memory", "--kills", "2"]
    monkeypatch.setattr("sys.argv", [*arguments, "--only", "controller", "signal"])
    assert population_faults.main() == 0, capsys.readouterr().out
