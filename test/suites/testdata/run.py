"""Runs a test suite in this process, which has arrays that a host looks at meanwhile.

Arguments: XML SUITE ARGS..., where SUITE is "regrtest", CPython's own way to run its tests, "pytest", or "unittest",
which runs a module of this folder. What became of each test is written into the file XML.
"""

import array
import sys

raw = bytearray(b"\x07" * 100000)
typed = array.array("d", [7.0]) * 20000
try:
    import numpy as np
except ImportError:
    large, small, shown = array.array("b", b"\x07") * (1 << 20), array.array("B", b"\x07") * 64, bytes(raw)
else:
    large, small, shown = np.full(1 << 20, 7, "u1"), np.full(64, 7, "u1"), np.full(1 << 17, 7, "u1")

try:
    import ndbridge
except ImportError:
    pass
else:
    ndbridge.publish("shown", shown)


def regrtest(xml, args):
    from test.libregrtest.main import main

    sys.argv = ["regrtest", "-v", "--junit-xml", xml] + args
    main()


def pytest(xml, args):
    import pytest

    sys.exit(pytest.main(["-q", "-p", "no:cacheprovider", "--junit-xml", xml] + args))


def unittest(xml, args):
    """As the others, with as much of the format as is read."""
    import unittest
    from xml.sax.saxutils import quoteattr

    class Result(unittest.TextTestResult):
        cases = []

        def note(self, test, what):
            self.cases.append("<testcase name=%s>%s</testcase>" % (quoteattr(str(test)), what))

        def addSuccess(self, test):
            super().addSuccess(test)
            self.note(test, "")

        def addFailure(self, test, err):
            super().addFailure(test, err)
            self.note(test, "<failure/>")

        def addError(self, test, err):
            super().addError(test, err)
            self.note(test, "<error/>")

    tests = unittest.defaultTestLoader.loadTestsFromName(args[0])
    result = unittest.TextTestRunner(verbosity=2, resultclass=Result).run(tests)
    with open(xml, "w") as file:
        file.write("<testsuites>%s</testsuites>" % "".join(Result.cases))
    sys.exit(not result.wasSuccessful())


if __name__ == "__main__":  # not in children that are spawned
    globals()[sys.argv[2]](sys.argv[1], sys.argv[3:])
