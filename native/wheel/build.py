"""build.py DIR MACHINE OUT: make the wheel ndbridge for x86_64 or aarch64, with the command line of DIR in it, which embeds the
plugin and the shared heap, and the licences there. The module is the one that hosts give to spawned children. The same files give the same bytes."""

import base64
import hashlib
import pathlib
import re
import sys
import zipfile

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
# What the embedded plugin needs of the C library, as its tag says.
TAG = "py3-none-manylinux_2_17_"

METADATA = """Metadata-Version: 2.1
Name: ndbridge
Version: {version}
Summary: Go programs look at the arrays of this Python without a copy
License: Apache-2.0
Requires-Python: >=3.8
Description-Content-Type: text/markdown

A Go host gives the module `ndbridge` to the Python programs that it starts; nothing has to be installed for that. With this package,
`import ndbridge` also works in a Python that no host has started: there `ndbridge.connected` is False and `publish` does nothing.
The package has the command `ndbridge`, too, and `python -m ndbridge doctor` says whether this Python works with it.
"""


def build(source, machine, out):
    source = pathlib.Path(source)
    module = (ROOT / "hostplugin/bootstrap/python/ndbridge.py").read_bytes()
    version = re.search(rb'^__version__ = "(.*)"$', module, re.M).group(1).decode()
    info = "ndbridge-%s.dist-info/" % version
    files = {
        "ndbridge/__init__.py": module,
        "ndbridge/__init__.pyi": (HERE / "__init__.pyi").read_bytes(),
        "ndbridge/__main__.py": (HERE / "__main__.py").read_bytes(),
        "ndbridge/bin/ndbridge": (source / "ndbridge").read_bytes(),
        "ndbridge/py.typed": b"",
        info + "LICENSE": (source / "LICENSE").read_bytes(),
        info + "THIRD-PARTY-LICENSES": (source / "THIRD-PARTY-LICENSES").read_bytes(),
        info + "METADATA": METADATA.format(version=version).encode(),
        info + "WHEEL": ("Wheel-Version: 1.0\nGenerator: ndbridge\nRoot-Is-Purelib: false\nTag: %s%s\n" % (TAG, machine)).encode(),
        info + "entry_points.txt": b"[console_scripts]\nndbridge = ndbridge.__main__:main\n",
    }
    record = ""
    for name, data in files.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
        record += "%s,sha256=%s,%d\n" % (name, digest, len(data))
    files[info + "RECORD"] = (record + info + "RECORD,,\n").encode()

    out = pathlib.Path(out)
    out.mkdir(parents=True, exist_ok=True)
    wheel = out / ("ndbridge-%s-%s%s.whl" % (version, TAG, machine))
    with zipfile.ZipFile(wheel, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in files.items():
            entry = zipfile.ZipInfo(name)  # of 1980
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = (0o100755 if name.endswith("bin/ndbridge") else 0o100644) << 16
            archive.writestr(entry, data)
    print(wheel)


build(*sys.argv[1:])
