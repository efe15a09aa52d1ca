#!/usr/bin/env python3
"""Runs the queries of a folder on several choices of devices, one after the other on one machine.

usage: bench-devices.py [--runs N] [--warm-up] PROGRAM QUERIES TABLES OUT DEVICE...

PROGRAM   the command `warpframe`, or `warpframe-cluster shell`
QUERIES   a folder of .sql files, a query each
TABLES    a folder of Parquet files, or of folders of them
OUT       a folder: rows of each query, and OUT/times.jsonl, a line for each query and choice
DEVICE    such as cuda:0, cuda:0,1, cuda:0,0, sim:2, or a cluster's df://host:port; duckdb is
          DuckDB over the same files, and stock:PORT,PARTITIONS Ballista as it is, whose scheduler
          listens there (STOCK_BALLISTA names cluster/examples/stock_ballista.rs as it was built);
          the others are compared with the first

For each choice one process runs all queries, each once over files and then N times (5) over columns
that lie on the devices. The table, printed last, has for each query the first run and the median of
the others in ms, how many times as fast as the first choice that is, and whether the rows are those
of the first choice (floats to 1e-6). A query that fails is left out of sums and means. With
--warm-up a process runs all queries once before, so that the measured one finds its kernels on disk;
WARPFRAME_QUICK_KERNELS=0 has them compiled with all optimisations at once.
"""
import argparse
import csv
import glob
import json
import math
import os
import re
import statistics
import subprocess
import sys
import time


def arguments():
    parser = argparse.ArgumentParser(usage=__doc__.split("\n\n")[1].removeprefix("usage: "))
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--warm-up", action="store_true")
    for name in ("program", "queries", "tables", "out"):
        parser.add_argument(name)
    parser.add_argument("devices", nargs="+")
    return parser.parse_args()


def milliseconds(text):
    value, unit = text.split()
    return float(value) * {"us": 1e-3, "µs": 1e-3, "ms": 1.0, "s": 1e3}[unit]


def tables_of(folder):
    files = sorted(glob.glob(f"{folder}/*.parquet"))
    return files or sorted(path for path in glob.glob(f"{folder}/*") if os.path.isdir(path))


def run_duckdb(args, queries, out):
    import duckdb
    connection, times = duckdb.connect(), {}
    for path in tables_of(args.tables):
        name = os.path.basename(path).removesuffix(".parquet")
        files = path if path.endswith(".parquet") else f"{path}/*.parquet"
        connection.execute(f"CREATE VIEW {name} AS SELECT * FROM read_parquet('{files}')")
    for name, sql in queries.items():
        times[name] = []
        for _ in range(1 + args.runs):
            begun = time.monotonic()
            found = connection.execute(sql)
            header, rows = [column[0] for column in found.description], found.fetchall()
            times[name].append((time.monotonic() - begun) * 1e3)
        with open(f"{out}/{name}.csv", "w", newline="") as file:
            csv.writer(file).writerows([header, *rows])
    return times


def run_stock(args, device, queries, out):
    port, partitions = device.removeprefix("stock:").split(",")
    command = [os.environ["STOCK_BALLISTA"], "run", port, partitions, str(1 + args.runs),
               args.queries, args.tables, out]
    done = subprocess.run(command, text=True, capture_output=True)
    times = {name: done.stderr[-300:] or "no time" for name in queries}
    for line in done.stdout.splitlines():
        name, _, found = line.partition(" ")
        times[name] = found if "failed" in found else [float(ms) for ms in found.split()]
    return times


def command_of(args, device):
    """The program that runs a script from its standard input."""
    where = ["--cluster", device] if device.startswith("df://") else ["--device", device]
    where += ["--strict"] if device.startswith(("cuda", "sim")) else []
    return [*args.program.split(), *tables_of(args.tables), *where, "--csv", "-f", "-"]


def run(args, device, queries, out):
    """The times of each query, or what went wrong; a query after a failure begins a process anew."""
    if device == "duckdb":
        return run_duckdb(args, queries, out)
    if device.startswith("stock:"):
        return run_stock(args, device, queries, out)
    if args.warm_up:
        script = [".output /dev/null"] + [f"{sql};" for sql in queries.values()]
        subprocess.run(command_of(args, device), input="\n".join(script), text=True,
                       capture_output=True)
    left, times = list(queries), {}
    while left:
        script = ["SET timer = on;"]
        for name in left:
            script += [f".output {out}/{name}.csv", f"{queries[name]};"]
            script += [".output /dev/null"] + [f"{queries[name]};"] * args.runs + [".output"]
        done = subprocess.run(command_of(args, device), input="\n".join(script), text=True,
                              capture_output=True)
        # The first is that of SET.
        found = [milliseconds(time) for time in re.findall(r"^time: (.*)$", done.stderr, re.M)][1:]
        of_each = args.runs + 1
        whole = min(len(found) // of_each, len(left))
        for at, name in enumerate(left[:whole]):
            times[name] = found[at * of_each:(at + 1) * of_each]
        if whole < len(left):
            lines = [line for line in done.stderr.splitlines() if line and not line.startswith("time:")]
            times[left[whole]] = " ".join(lines[-6:]) or f"exit code {done.returncode}"
        left = left[whole + 1:]
    return times


def rows_of(path):
    def value(text):
        try:
            return float(text)
        except ValueError:
            # A date, and a time of midnight.
            return text.removesuffix("T00:00:00").removesuffix(" 00:00:00")
    # Engines may have written no line for no rows.
    with open(path, newline="") as file:
        rows = list(csv.reader(file))[1:]
    rows = [[value(text) for text in row] for row in rows]
    return sorted(rows, key=lambda row: [f"{of:.5g}" if isinstance(of, float) else of for of in row])


def alike(one, other):
    def same(a, b):
        if isinstance(a, float) and isinstance(b, float):
            return math.isclose(a, b, rel_tol=1e-6, abs_tol=1e-6)
        return a == b
    return len(one) == len(other) and all(
        len(a) == len(b) and all(map(same, a, b)) for a, b in zip(one, other))


def main():
    args = arguments()
    queries = {}
    by_number = lambda path: [int(part) if part.isdigit() else part for part in re.split(r"(\d+)", path)]
    for path in sorted(glob.glob(f"{args.queries}/*.sql"), key=by_number):
        with open(path) as file:
            queries[os.path.basename(path)[:-len(".sql")]] = file.read().strip().rstrip(";")
    if not queries:
        sys.exit(f"{args.queries} has no .sql files")
    times = {}
    for device in args.devices:
        out = f"{args.out}/{re.sub('[^A-Za-z0-9]+', '-', device)}"
        os.makedirs(out, exist_ok=True)
        times[device] = (run(args, device, queries, out), out)
    first = args.devices[0]
    with open(f"{args.out}/times.jsonl", "w") as file:
        for device, (of_device, _) in times.items():
            for name, ms in of_device.items():
                file.write(json.dumps({"device": device, "query": name, "ms": ms}) + "\n")
    print("query      " + "".join(f"{device + ' first':>16} {'hot':>9} {'times':>6} {'rows':>6}" for device in times))
    sums = {device: [] for device in times}
    for name in queries:
        line = f"{name:10} "
        for device, (of_device, out) in times.items():
            ms, base = of_device.get(name), times[first][0].get(name)
            if not isinstance(ms, list) or not isinstance(base, list):
                line += f"{'failed':>16} {'':>9} {'':>6} {'':>6}"
                continue
            hot, base_hot = statistics.median(ms[1:] or ms), statistics.median(base[1:] or base)
            same = alike(rows_of(f"{out}/{name}.csv"), rows_of(f"{times[first][1]}/{name}.csv"))
            sums[device].append((ms[0], hot, base[0], base_hot))
            line += f"{ms[0]:16.1f} {hot:9.2f} {base_hot / hot:6.2f} {'equal' if same else 'DIFFER':>6}"
        print(line)
    for device, found in sums.items():
        if found:
            firsts, hots, base_firsts, base_hots = zip(*found)
            geomean = math.exp(statistics.mean(math.log(b / h) for b, h in zip(base_hots, hots)))
            print(f"{device}: {len(found)} queries, first {sum(firsts):.0f} ms ({sum(base_firsts) / sum(firsts):.2f} times {first}), "
                  f"hot {sum(hots):.1f} ms ({sum(base_hots) / sum(hots):.2f} times, geometric mean {geomean:.2f}, "
                  f"least {min(b / h for b, h in zip(base_hots, hots)):.2f})")
    for device, (of_device, _) in times.items():
        for name, ms in of_device.items():
            if not isinstance(ms, list):
                print(f"{device} {name}: {ms}")


if __name__ == "__main__":
    main()
