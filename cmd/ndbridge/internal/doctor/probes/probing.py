"""What the probes have in common. A probe makes arrays of one framework, of every kind that its version
has, in `arrays`, and says in `report` what is in each. It runs under Python 3.8 and every later one."""

import hashlib
import json

MANY = 1 << 16  # elements: enough for the shared heap, whatever their size

arrays = {}
said = []


class Now:
    """now[name] is the hash of what is in an array at that moment."""

    contents = {}

    def __getitem__(self, name):
        return hashlib.sha256(self.contents[name](arrays[name])[1]).digest()


now = Now()


def kind(name, make, content=None, quirk="", shared=True):
    """Makes an array. content gives its shape and its elements, in C order; without it the array must be
    refused. shared says that no copy is needed. quirk is the one that the array is a witness of: what is
    expected holds where it is in force."""
    entry = {"name": name, "quirk": quirk, "shared": shared, "refused": content is None}
    try:
        arrays[name] = make()
        if content is not None:
            now.contents[name] = content
            shape, elements = content(arrays[name])
            entry.update(shape=list(shape), sha256=hashlib.sha256(elements).hexdigest())
    except Exception as e:  # this version has none of that kind
        entry["absent"] = "%s: %s" % (type(e).__name__, e)
        arrays.pop(name, None)
    said.append(entry)


def report(**more):
    return bytearray(json.dumps(dict(more, arrays=said)).encode())


def on_gpu(first):
    """Gives the report of a probe that finds no GPU, which first() shows by an exception; else None."""
    try:
        first()
    except Exception as e:
        return report(without="it has no GPU here: %s: %s" % (type(e).__name__, e))
