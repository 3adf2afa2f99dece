"""Random values of Go's, which must be what Python makes of the expression; and back, which Go compares."""
from inside import append, build, check, random, same

forms = []
for seed in range(4000):
    got, text = random(seed)
    forms.append(append(got))
    want = eval(text)
    if not same(got, want):  # the texts are long
        raise AssertionError("seed %d: %s is %r" % (seed, text, got))

# Bytes that are almost a form: they make an object or an error.
import random as chance

chance.seed(1)
good = 0
for form in map(bytearray, forms[:3000]):
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
