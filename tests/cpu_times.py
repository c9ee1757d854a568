"""Which tests take processor time: `pytest -p tests.cpu_times` lists the dearest at the end.

A test is charged for the processes that it has started and that have ended, which `--durations`
is not: that counts waiting, and nothing of other cores.
"""

import os
from collections.abc import Generator, Iterator
from typing import Any

import pytest

_SHOWN = 40
_CPU = "cpu_s"


def _cpu_s() -> float:
    return sum(os.times()[:4])  # user and system time, of this process and of its ended children


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    before = _cpu_s()
    item.user_properties.append((_CPU, before))
    yield


@pytest.hookimpl(hookwrapper=True, trylast=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, Any, None]:
    """Replace the time at the test's start by what it has taken, when it is torn down."""
    outcome = yield
    report = outcome.get_result()
    if report.when == "teardown":
        started = dict(item.user_properties)[_CPU]
        report.user_properties = [(_CPU, _cpu_s() - started)]
    else:
        report.user_properties = []


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    reports = [report for kind in terminalreporter.stats.values() for report in kind]
    taken = {
        report.nodeid: dict(report.user_properties)[_CPU]
        for report in reports
        if getattr(report, "when", "") == "teardown" and report.user_properties
    }
    ranked = sorted(taken.items(), key=lambda pair: -pair[1])
    terminalreporter.section(f"processor time: {sum(taken.values()):.0f} s in {len(taken)} tests")
    shown = ranked if terminalreporter.verbosity > 0 else ranked[:_SHOWN]
    for name, seconds in shown:
        terminalreporter.write_line(f"{seconds:8.2f} s  {name}")
