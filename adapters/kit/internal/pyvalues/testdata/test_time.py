"""How long it takes is printed. Only what grows with the square of the size would take ten seconds."""
from inside import check, time

for name, value, n in [
    ("3 ints, a str, a dict of 2", (1, 2, 3, "a", {"a": 1, "b": 2.5}), 20000),
    ("an int", 1, 20000),
    ("10^5 ints", list(range(10**5)), 5),
    ("a dict of 10^4", {str(i): i for i in range(10**4)}, 20),
    ("10^4 texts", [str(i) for i in range(10**4)], 20),
    ("bytes of 1 MB", b"x" * 10**6, 20),
]:
    appended, built, size = time(value, n)
    print("%s: appended in %.2f us, built in %.2f us, %d bytes" % (name, appended / 1e3, built / 1e3, size))
    check("to append %s takes %d ns" % (name, appended), appended > 10**10)
    check("to build %s takes %d ns" % (name, built), built > 10**10)
print("done")
