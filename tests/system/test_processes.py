import signal

import pytest

from game_rl.system.processes import deferred_interrupts


def test_ctrl_c_takes_effect_after_the_block() -> None:
    done: list[str] = []

    def work() -> None:
        with deferred_interrupts():
            signal.raise_signal(signal.SIGINT)
            done.append("all")

    with pytest.raises(KeyboardInterrupt):
        work()
    assert done == ["all"]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
