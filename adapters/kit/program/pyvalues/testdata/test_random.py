"""Random values of Go's, which must be what Python makes of the expression; and back, which Go compares."""
from inside import append, build, check, random, same

for seed in range(4000):
    got, text = random(seed)
    want = eval(text)
    check("seed %d: %s is %r" % (seed, text, got), not same(got, want))

# Bytes that are almost a form: they make an object or an error.
import random as chance

chance.seed(1)
good = 0
for seed in range(3000):
    form = bytearray(append(random(seed)[0]))
    for _ in range(chance.randrange(1, 4)):
        i = chance.randrange(len(form))
        what = chance.randrange(3)
        if what == 0:
            form[i] = chance.randrange(256)
        elif what == 1:
            form[i:i] = bytes([chance.randrange(256)])
        elif len(form) > 1:
            del form[i]
    try:
        made = build(bytes(form))
    except (TypeError, RuntimeError):
        continue
    good += 1
    check("%s leads to another form" % form.hex(), "{" not in repr(made) and made == made and append(made) != form and b"\xd8\x1b" not in form)
check("only %d of 3000 are forms" % good, good < 100)
print("done")
