#!/usr/bin/env python3
"""Whether the packages for crates.io have what they compile from, and no more than 2 MB.

usage: check-package.py [ROOT]

Asks `cargo package --list`, which needs no network. Prints what a source of the library includes and the package has
not, files of tests, measurements and data, and a package that is too large: as a .crate is, a tar file under gzip.
"""
import io
import pathlib
import re
import subprocess
import sys
import tarfile

MOST = 2_000_000
FOREIGN = ("benches/", "data/", "docs/lab/", "docs/sweeps/", "examples/", "scripts/", "tests/", ".ci/")

root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ".").resolve()
found = []
for package, folder in {"warpframe-device": root / "kernels", "warpframe": root, "warpframe-sql": root / "sql"}.items():
    command = ["cargo", "package", "--list", "--allow-dirty", "--package", package]
    listed = subprocess.run(command, cwd=root, check=True, capture_output=True, text=True).stdout.splitlines()
    found += [f"{package}: {name} is not to be in it" for name in listed if name.startswith(FOREIGN)]
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w:gz", compresslevel=9) as tar:
        for name in listed:
            # Others are what cargo makes.
            if (folder / name).is_file():
                tar.add(folder / name, name)
    if len(file.getvalue()) > MOST:
        found.append(f"{package}: {len(file.getvalue()):,} bytes, at most {MOST:,} are wanted")
    for path in sorted(folder.glob("src/**/*.rs")):
        for included in re.findall(r'include_(?:str|bytes)!\("([^"]+)"\)', path.read_text()):
            name = (path.parent / included).resolve().relative_to(folder).as_posix()
            if name not in listed:
                found.append(f"{path.relative_to(root)}: includes {name}, which the package has not")
print("\n".join(found), end="\n" if found else "")
sys.exit(1 if found else 0)
