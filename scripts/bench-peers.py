#!/usr/bin/env python3
"""Our primitives beside libcudf's, CUB's and CuPy's: a table in Markdown.

Reads the JSON lines of `bench-primitives` (and `bench-tpch`), and those of the peers' programs, which have "op", "engine",
"rows" and "ms". At 100M rows our figure is device time and goals are fixed; at other sizes, where launches and waits
dominate, it is wall time as the peers' is, and the goal is half of libcudf's.

  scripts/bench-peers.py --ours primitives.jsonl... --peers micro.jsonl cub.jsonl [--rows 100000000] [--wall]
"""
import argparse
import json
import math
import sys
from dataclasses import dataclass

FULL = 100_000_000


@dataclass
class Row:
    """A line of the table: the names of one operation in each program, and our goal in milliseconds at 100M rows."""

    label: str
    ours: str
    goal: float | None
    libcudf: str = ""
    cub: str = ""
    cupy: str = ""
    # Rows where not those of the table.
    rows: int | None = None
    # What CUB does is less than the operation: shown, not compared.
    cub_is_part: bool = False


def table(n):
    """The lines for tables of n rows."""
    rows = [
        Row("sort i32 keys", "sort i32", 2.0, "sort_i32", "sort_keys_u32", "sort_i32"),
        Row("sort i64 keys", "sort i64", 3.6, "sort_i64", "sort_keys_u64", "sort_i64"),
        Row("sort f64 keys", "sort f64", 3.7, "sort_f64", "sort_keys_f64", "sort_f64"),
        Row("argsort i32", "argsort i32", 2.9, "argsort_i32", "sort_pairs_u32_u32", "argsort_i32"),
        Row("argsort i64", "argsort i64", 4.3, "argsort_i64", "sort_pairs_u64_u32", "argsort_i64"),
        Row("argsort f64", "argsort f64", 4.4, "argsort_f64", "sort_pairs_u64_u32", "argsort_f64"),
        Row("argsort (i32 < 1000, i64)", "argsort (i32<1000, i64)", 4.5, "argsort_2col_i32_i64"),
        Row("sort i64 key with one f64", "sort i64 key with one f64", 5.4, "sort_by_key_i64_f64", "sort_pairs_u64_u64"),
        Row("top 100 of i64", "top 100 of i64", 0.25, "top_100_i64"),
    ]
    sums = {10: (0.40, 0.40), 1000: (0.40, 0.48), 100_000: (1.05, 2.0), 10_000_000: (1.9, 2.9)}
    fives = {10: (0.44, 0.48), 1000: (0.45, 0.75), 100_000: (1.6, 2.8), 10_000_000: (2.6, 4.5)}
    distincts = {10: (0.21, None), 1000: (0.21, None), 100_000: (0.26, None), 10_000_000: (1.35, None)}
    for label, ours, libcudf, goals in (
        ("group sum", "group_sum i64→f64", "groupby_sum_i64_f64", sums),
        ("group sum, min, max, mean, count", "group_5 i64→f64", "groupby_5agg_i64_f64", fives),
        ("distinct i64", "distinct i64", "distinct_i64", distincts),
    ):
        for groups, pair in goals.items():
            for kind, goal in zip(("dense", "scattered"), pair):
                name = f"{ours} groups={groups} {kind}"
                rows.append(Row(f"{label}, {short(groups)} groups, {kind}", name, goal, f"{libcudf}_card{groups}"))
    groups = min(10_000_000, -(-n // 10))
    # CUB's program has these groups at any number of rows.
    cub = f"reduce_by_key_sorted_i64_f64_card{groups}" if groups == 10_000_000 else ""
    name = f"group_sum sorted i64→f64 groups={groups}"
    rows.append(Row(f"sorted reduce-by-key i64, f64, {short(groups)} groups", name, 0.72, cub=cub))
    for percent, goal in ((1, 0.28), (10, 0.53), (50, 0.90), (90, 1.08)):
        rows.append(Row(f"filter x < c of (i64, f64), {percent}% kept", f"filter x<c of (i64,f64) kept={percent}%", goal,
                        f"filter_lt_{percent}pct_i64_f64", f"select_if_u64_{percent}pct", cub_is_part=True))
    rows.append(Row("gather i64, f64 by random permutation", "gather (i64,f64) by random permutation", 4.1,
                    "gather_random_i64_f64"))
    joins = {1000: (0.88, 0.88), 1_000_000: (1.1, 1.6), 10_000_000: (2.5, 3.0), n: (4.8, 7.3)}
    for build, pair in joins.items():
        for kind, goal in zip(("dense", "scattered"), pair):
            rows.append(Row(f"join, {short(build)} build, one column from each side, {kind}", f"join build={build} {kind}", goal,
                            f"inner_join_2payload_build{build}"))
    build = min(10_000_000, n)
    for kind, goal in (("dense", 2.0), ("scattered", 3.5)):
        rows.append(Row(f"join, {short(build)} build, 10% of probes match, {kind}", f"join build={build} {kind} matching=10%", goal))
    for build, goal in ((1000, 0.32), (1_000_000, 0.85), (10_000_000, 1.8)):
        rows.append(Row(f"probe fused into a sum, {short(build)} build, dense", f"join into a sum build={build} dense", goal))
    rows += [
        Row("sum f64", "sum f64", 0.195, "sum_f64", "reduce_sum_f64", "sum_f64"),
        Row("cumulative sum f64", "cumulative_sum f64", 0.48, "cumsum_f64", "scan_sum_f64", "cumsum_f64"),
        Row(f"quadratic formula, {short(n)} f64", "quadratic f64", 0.78, cupy="quadratic_formula"),
        Row("quadratic formula, 1M f64", "quadratic f64", 0.020, cupy="quadratic_formula", rows=1_000_000),
        Row("jets: 1M rows, 4 sums, sorted by key", "jets: 4 sums by key, sorted", 0.13, "jets_groupby_sum_sort", rows=1_000_000),
        Row("TPC-H Q6, 60M rows", "tpch q6 sf10", 0.35, rows=0),
        Row("TPC-H Q1, 60M rows", "tpch q1 sf10", 0.7, rows=0),
    ]
    return rows


def short(count):
    for unit, size in (("B", 10**9), ("M", 10**6), ("k", 10**3)):
        if count >= size and count % size == 0:
            return f"{count // size}{unit}"
    return str(count)


def lines(paths):
    for path in paths:
        with open(path, encoding="utf-8") as file:
            for text in file:
                if text.lstrip().startswith("{"):
                    yield json.loads(text)


def read_ours(paths):
    """Our lines by name and rows; of several runs the last."""
    return {(line["bench"], line.get("rows", 0)): line for line in lines(paths) if "device_ms" in line and "sweep" not in line}


def read_peers(paths):
    """The peers' milliseconds by engine, operation and rows."""
    found = {}
    for line in lines(paths):
        if "ms" in line and "op" in line:
            # CuPy's own kernel, where there is one, is its better figure.
            engine = "cupy" if line["engine"].startswith("cupy") else line["engine"]
            key = (engine, line["op"], line["rows"])
            found[key] = min(line["ms"], found.get(key, math.inf))
    return found


def cell(ms, note=""):
    if ms is None:
        return "–"
    return (f"{ms:.3f}" if ms < 1 else f"{ms:.2f}" if ms < 10 else f"{ms:.1f}") + note


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ours", nargs="+", required=True)
    parser.add_argument("--peers", nargs="+", default=[])
    parser.add_argument("--rows", type=lambda text: int(float(text)), help="default: the most of ours")
    parser.add_argument("--wall", action="store_true", help="our wall time at 100M rows too")
    arguments = parser.parse_args()
    ours, peers = read_ours(arguments.ours), read_peers(arguments.peers)
    if not ours:
        sys.exit("no line of ours has a time")
    n = arguments.rows or max(rows for _, rows in ours)
    full = n == FULL
    field = "wall_ms" if arguments.wall or not full else "device_ms"

    print(f"| operation ({short(n)} rows, ms) | libcudf | CUB | CuPy | ours | floor | best peer / ours | goal | met |")
    print("|---|---|---|---|---|---|---|---|---|")
    ratios, goals, met, slower, missing, parts = [], 0, 0, [], [], False
    for row in table(n):
        rows = n if row.rows is None else row.rows
        line = ours.get((row.ours, rows))
        libcudf, cub, cupy = (peers.get((engine, op, rows)) for engine, op in
                              (("libcudf", row.libcudf), ("cub", row.cub), ("cupy", row.cupy)))
        if line is None and (libcudf, cub, cupy) == (None, None, None):
            continue
        time = line.get(field, line.get("device_ms")) if line else None
        rivals = {"libcudf": libcudf, "CUB": None if row.cub_is_part else cub, "CuPy": cupy}
        rivals = {name: ms for name, ms in rivals.items() if ms is not None}
        goal = row.goal if full or row.rows == 0 else libcudf / 2 if libcudf else None
        ratio = verdict = ""
        if time is None:
            missing.append(row.label)
        else:
            if libcudf:
                ratios.append(libcudf / time)
            if rivals:
                ratio = f"{min(rivals.values()) / time:.1f}×"
                faster = [f"{name} {cell(ms)}" for name, ms in rivals.items() if ms < time]
                if faster:
                    slower.append(f"{row.label}: {cell(time)} ({', '.join(faster)})")
            if goal is not None:
                goals, met = goals + 1, met + (time <= goal)
                verdict = "yes" if time <= goal else "no"
        note = " ¹" if row.cub_is_part and cub is not None else ""
        parts = parts or bool(note)
        floor = line.get("floor_ms") if line else None
        ours_cell = f"**{cell(time)}**" if time is not None else "–"
        goal_cell = f"≤ {cell(goal)}" if goal is not None else "–"
        print(f"| {row.label} | {cell(libcudf)} | {cell(cub, note)} | {cell(cupy)} | {ours_cell} | {cell(floor)} | "
              f"{ratio or '–'} | {goal_cell} | {verdict or '–'} |")

    print()
    if parts:
        print("¹ One column, kept by its own values: less than the operation, and not compared.\n")
    if ratios:
        mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
        print(f"Geometric mean of libcudf's time over ours, {len(ratios)} rows: {mean:.2f}×.")
    print(f"Goals met: {met} of {goals}. Ours is {'wall' if field == 'wall_ms' else 'device'} time.")
    print("Slower than a peer: " + ("; ".join(slower) if slower else "none") + ".")
    if missing:
        print("Not measured: " + "; ".join(missing) + ".")


if __name__ == "__main__":
    main()
