"""CPU time of a training falls to the phase in which it was taken."""

from benchmarks.used_cores import Moment, Span, table, times_of


def test_each_interval_counts_for_the_phase_of_its_middle() -> None:
    """Two seconds of start, four of play of which one evaluates, two of update, two of the end."""
    spans = [Span("evaluation", 3, 4), Span("play", 2, 6), Span("update", 6, 8)]
    moments = [Moment(second, 2.0 * second) for second in range(11)]
    found = times_of(moments, spans)
    assert found == {
        "start": (2, 4),
        "play": (3, 6),
        "update": (2, 4),
        "evaluation": (1, 2),
        "end": (2, 4),
    }
    last = table(found, 4).splitlines()[-1].split()
    assert last == ["the", "run", "10.0", "100.0%", "20.0", "50.0%", "50.0%"]
