"""pack.py DIR OUT: make the files of a native module from those of DIR, each compressed by zstd, and SHA256SUMS of what they
were. The same files give the same bytes."""

import hashlib
import pathlib
import sys

import zstandard


def pack(source, out):
    sums = ""
    for path in sorted(p for p in source.rglob("*") if p.is_file()):
        name, data = path.relative_to(source).as_posix(), path.read_bytes()
        sums += "%s  %s\n" % (hashlib.sha256(data).hexdigest(), name)
        file = out / (name + ".zst")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(zstandard.ZstdCompressor(level=19).compress(data))
    (out / "SHA256SUMS").write_text(sums)


pack(*map(pathlib.Path, sys.argv[1:]))
