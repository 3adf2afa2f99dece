"""Takes the device code for other GPUs out of shared libraries: thin.py ARCHITECTURE FILE...

A library with device code has it many times, for each generation of GPUs, compressed. What is not for
the given architecture (90 for compute capability 9.0) is overwritten with zeros, which then compress
to nothing: the library keeps its size and its layout. Where a part of the code is not there for that
architecture, all its versions stay, since one of them may be what the driver translates.
"""

import mmap
import struct
import sys

MAGIC = struct.pack("<I", 0xBA55ED50)
HEADER = struct.Struct("<IHHQ")  # magic, version, size of this header, size of all entries
ENTRY = struct.Struct("<HHIQIIHHI")  # kind, -, size of this header, size of the data, -, -, minor, major, architecture
MACHINE_CODE = 2


def entries(data, start, end):
    """The entries of one container: (position of the data, its size, kind, architecture)."""
    while start + ENTRY.size <= end:
        kind, _, header, size, _, _, _, _, architecture = ENTRY.unpack_from(data, start)
        if kind not in (1, MACHINE_CODE) or header < ENTRY.size or start + header + size > end:
            return  # padding, or something of another kind: it stays
        yield start + header, size, kind, architecture
        start += header + size


def thin(path, architecture):
    """Overwrites what is not needed; answers how many bytes that is, and how many there are."""
    removed = total = 0
    with open(path, "r+b") as file, mmap.mmap(file.fileno(), 0) as data:
        at = data.find(MAGIC)
        while at >= 0:
            _, version, header, size = HEADER.unpack_from(data, at)
            if version == 1 and header == HEADER.size and at + header + size <= len(data):
                found = list(entries(data, at + header, at + header + size))
                total += sum(entry[1] for entry in found)
                if any(kind == MACHINE_CODE and arch == architecture for _, _, kind, arch in found):
                    for position, length, kind, arch in found:
                        if kind != MACHINE_CODE or arch != architecture:
                            data[position : position + length] = bytes(length)
                            removed += length
            at = data.find(MAGIC, at + len(MAGIC))
    return removed, total


def main():
    for path in sys.argv[2:]:
        removed, total = thin(path, int(sys.argv[1]))
        if total:
            print(f"{path}: {removed >> 20} of {total >> 20} MiB of device code taken out")


if __name__ == "__main__":
    main()
