#!/usr/bin/env python3
"""Sums up the timelines that scripts/first-runs.sh wrote.

usage: first_runs.py OUT

For each state of the cache of kernels: median, sum and greatest of the process's time, and of each
part, in ms. A part's time is that of its spans on all threads together; `reach` is from the begin of
the process's first span to the end of the part's last one.
"""
import glob
import json
import os
import statistics
import sys


def parts_of(path):
    with open(path) as file:
        events = [event for event in json.load(file)["traceEvents"] if event["ph"] == "X"]
    parts = {}
    for event in events:
        time, count, end = parts.get(event["name"], (0.0, 0, 0.0))
        end = max(end, event["ts"] + event["dur"])
        parts[event["name"]] = (time + event["dur"], count + 1, end)
    return {name: (time / 1e3, count, end / 1e3) for name, (time, count, end) in parts.items()}


def main(out):
    contexts = []
    for path in glob.glob(f"{out}/context.*.ns"):
        with open(path) as file:
            contexts.append(int(file.read()) / 1e6)
    if contexts:
        print(f"a context alone: median {statistics.median(contexts):.0f} ms of {len(contexts)} processes")
    for cache in ("empty", "filling", "warm"):
        runs = {}
        for path in sorted(glob.glob(f"{out}/{cache}.*.ns")):
            trace = path[: -len("ns")] + "json"
            if os.path.exists(trace):
                with open(path) as file:
                    runs[os.path.basename(trace)] = (int(file.read()) / 1e6, parts_of(trace))
        if not runs:
            continue
        times = [time for time, _ in runs.values()]
        print(f"cache {cache}: {len(times)} processes, median {statistics.median(times):.0f} ms,", end=" ")
        print(f"sum {sum(times):.0f}, greatest {max(times):.0f} ({max(runs, key=lambda name: runs[name][0])})")
        names = sorted({name for _, parts in runs.values() for name in parts})
        print(f"  {'part':32} {'median':>9} {'sum':>9} {'greatest':>9} {'spans':>7} {'reach':>9}")
        for name in names:
            found = [parts.get(name, (0.0, 0, 0.0)) for _, parts in runs.values()]
            each = [time for time, _, _ in found]
            reach = statistics.median(end for _, _, end in found)
            spans = statistics.median(count for _, count, _ in found)
            print(f"  {name:32} {statistics.median(each):9.1f} {sum(each):9.0f} {max(each):9.1f} {spans:7.0f} {reach:9.1f}")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(sys.argv[1])
