"""A stop that is requested several times: the first reason counts, no notice is lost."""

from game_rl.errors import Interrupted
from game_rl.system.stop_request import StopRequest


def test_the_first_reason_counts() -> None:
    stop, first = StopRequest(), Interrupted("first", exit_code=143)
    stop.ask(first)
    stop.ask(Interrupted("second", exit_code=130))
    assert stop.reason is first


def test_a_request_without_a_notice_leaves_the_one_that_nobody_has_seen() -> None:
    stop = StopRequest()
    stop.ask(Interrupted("a signal"), notice="stopping after this update")
    stop.ask(Interrupted("a full disk"))
    assert stop.take_notice() == "stopping after this update"
    assert stop.take_notice() is None
