"""`pytest --flydsl-check`: every launch of a test runs under all checks; a fault fails the test with the report.

Registered as a pytest plugin by the package. A test opts out, or picks checks, with a marker:

    @pytest.mark.flydsl_check(checks="default,-race")      # names as in FLYDSL_SIM_CHECK
    @pytest.mark.flydsl_check(False)

A test that opens `flydsl.sim.check()` itself keeps what it collects there to itself. Imports nothing of the simulator
unless the option is given.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

DEFAULT = "default,holes,needless,stale"
WARNED = pytest.StashKey[list]()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options."""
    group = parser.getgroup("flydsl", "FlyDSL: checks of kernels in the simulator")
    group.addoption(
        "--flydsl-check",
        nargs="?",
        const=DEFAULT,
        default=None,
        metavar="CHECKS",
        help="run every launch in the simulator under these checks (default: %(const)s); faults fail the test",
    )
    group.addoption("--flydsl-schedule", default=None, help="order of waves: lockstep, ahead, reverse, random:SEED")


def pytest_configure(config: pytest.Config) -> None:
    """Declare the marker; start the list of warnings; make the simulator the runtime."""
    config.addinivalue_line("markers", "flydsl_check(checks): checks of this test's launches; False: none")
    if config.getoption("--flydsl-check") is not None:
        config.stash[WARNED] = []


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    """Run the test inside a scope; fail it when the scope holds faults."""
    checks = checks_of(item)
    if checks is None:
        return (yield)
    from flydsl.sim import check
    from flydsl.utils import env

    schedule = item.config.getoption("--flydsl-schedule")
    with env.override(FLYDSL_RUNTIME_KIND="sim"), check("collect", checks, schedule) as found:
        result = yield
    warned = [f for f in found if f.severity == "warning"]
    item.config.stash[WARNED] += [(item.nodeid, f) for f in warned]
    for finding in found:
        if finding.severity != "error":
            item.add_report_section("call", "flydsl", str(finding))
    if found.errors:
        pytest.fail("\n\n".join([*map(str, found.errors), found.summary()]), pytrace=False)
    return result


def checks_of(item: pytest.Item) -> str | None:
    """Return the checks for a test, None for no scope."""
    asked = item.config.getoption("--flydsl-check")
    if asked is None:
        return None
    marker = item.get_closest_marker("flydsl_check")
    chosen = asked if marker is None else marker.args[0] if marker.args else marker.kwargs.get("checks", asked)
    return chosen if isinstance(chosen, str) else (asked if chosen else None)


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    """Print warnings and the closing line."""
    warned = config.stash.get(WARNED, None)
    if warned is None:
        return
    from flydsl.sim import closing_line

    terminalreporter.section("flydsl")
    for nodeid, finding in warned:
        terminalreporter.write_line(f"{nodeid}: {str(finding)}")
    terminalreporter.write_line(closing_line())
