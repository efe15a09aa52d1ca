#!/usr/bin/env python3
"""Fills with zeros what a library holds of GPU code for other compute capabilities than one, so that it packs small: the
driver picks, by the headers, the code of the GPU that is there, and looks at no other.

  keep_arch.py LIBRARY 90

In a library's fat binaries a header (magic, version, bytes of the header, bytes of all that follows) stands before entries,
each a header (kind, version, bytes of the header, bytes of the code, …, compute capability at byte 28) and its code.
"""
import struct
import sys

MAGIC = struct.pack("<I", 0xBA55ED50)
# Kinds of entries: PTX, machine code.
KINDS = (1, 2)


def entries(library, begin, end):
    """Where the entries of one fat binary have their code: compute capability, first byte, bytes; none if it is not one."""
    found = []
    while begin < end:
        if begin + 32 > end:
            return []
        kind, _, header, size = struct.unpack_from("<HHIQ", library, begin)
        if kind not in KINDS or not 32 <= header <= 1024 or begin + header + size > end:
            return []
        found.append((struct.unpack_from("<I", library, begin + 28)[0], begin + header, size))
        begin += header + size
    return found


def main():
    path, kept = sys.argv[1], int(sys.argv[2])
    with open(path, "rb") as file:
        library = bytearray(file.read())
    left = gone = 0
    at = library.find(MAGIC)
    while at >= 0:
        version, header, size = struct.unpack_from("<HHQ", library, at + 4)
        end = at + header + size
        found = entries(library, at + header, end) if version == 1 and header == 16 and end <= len(library) else []
        # Code that has none for this GPU stays whole.
        if any(arch == kept for arch, _, _ in found):
            for arch, begin, size in found:
                if arch == kept:
                    left += size
                else:
                    gone += size
                    library[begin : begin + size] = bytes(size)
        at = library.find(MAGIC, end if found else at + 4)
    if not left:
        sys.exit(f"{path} has no code for compute capability {kept}")
    with open(path, "wb") as file:
        file.write(library)
    print(f"{path}: {left / 1e6:.1f} MB of GPU code left, {gone / 1e6:.1f} MB filled with zeros")


if __name__ == "__main__":
    main()
