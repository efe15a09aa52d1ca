#!/usr/bin/env python3
"""Whether each module of the engine uses only those before it (ARCHITECTURE.md, "Map").

usage: check-modules.py [ROOT]

Looks at every `crate::NAME` in src/, tests aside. Prints each use of a later module, with its place.
"""
import pathlib
import re
import sys

# Each may use those before it. `error` and `interrupt` are used by all; `host` and `interop` are leaves.
ORDER = ["device", "ops", "column", "io", "codegen", "plan", "exec", "query", "frame", "session"]

root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ".") / "src"
rank = {name: place for place, name in enumerate(ORDER)}
found = 0
for path in sorted(root.rglob("*.rs")):
    module = path.relative_to(root).parts[0].removesuffix(".rs")
    if module not in rank or "tests" in path.with_suffix("").parts:
        continue
    for number, line in enumerate(path.read_text().splitlines(), 1):
        if line.startswith("mod tests"):
            break
        for used in re.findall(r"\bcrate::(\w+)", line.split("//")[0]):
            if rank.get(used, -1) > rank[module]:
                print(f"{path}:{number}: {module} uses {used}, which comes after it")
                found += 1
sys.exit(1 if found else 0)
