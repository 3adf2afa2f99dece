"""A pytest plugin that writes to $RECORD how each test ended, how long it took, and what the shared
heap did meanwhile, as JSON. It runs only the tests that $ONLY lists, if that is set."""

import json
import os

import ndheap

_outcomes, _seconds = {}, {}


def _outcome(report):
    if hasattr(report, "wasxfail"):
        return "xpassed" if report.passed else "xfailed"
    if report.failed and report.when != "call":
        return "error"
    return report.outcome


def pytest_collection_modifyitems(items):
    if "ONLY" in os.environ:
        with open(os.environ["ONLY"]) as file:
            only = set(json.load(file))
        items[:] = [item for item in items if item.nodeid in only]


def pytest_runtest_logreport(report):
    _seconds[report.nodeid] = _seconds.get(report.nodeid, 0) + report.duration
    if report.when == "call" or not report.passed:
        _outcomes[report.nodeid] = _outcome(report)


def pytest_collectreport(report):
    if not report.passed:
        _outcomes[report.nodeid] = "error" if report.failed else "skipped"


def pytest_sessionfinish():
    record = {"outcomes": _outcomes, "seconds": _seconds}
    if ndheap.loaded():
        stats = ndheap.stats()
        record["taken"], record["threshold"] = stats.taken, stats.threshold
    with open(os.environ["RECORD"], "w") as file:
        json.dump(record, file)
