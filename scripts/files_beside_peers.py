#!/usr/bin/env python3
"""Parquet files and batches of Arrow into device memory: warpframe beside libcudf, and beside readers into host memory (polars,
pyarrow, DuckDB). One line a case, in Markdown, and JSON lines.

  files_beside_peers.py --bench FILES --out OUT.jsonl [--scratch DIR] [--cases NAMES] [--engines NAMES] [--scale 1] ...
  files_beside_peers.py --report OUT.jsonl...     the table of runs before, of several together
  files_beside_peers.py --list                    the cases

FILES is the executable of `cargo bench --bench files`. Files are written into DIR first (files_written.py says what they are),
and lie in the page cache when they are read. Each peer runs in a process of its own (files_readers.py), one after another:
the first read is a warm-up, and the median of the next five counts, or of as many as --seconds leaves; "×N" behind a time
says how many, "first" that there was time for one read only. Ours is a process a case, after another that compiled its
kernels (and compared its values with the CPU engine's, with --check).

"libcudf" has its defaults, "libcudf-threads" as many threads for reading and decompressing as there are cores. GB/s counts
bytes of the file's columns that are read, of batches their bytes in host memory. The share of the bus is that of the rate at
which CuPy copies pinned host memory.
"""
import argparse
import collections
import concurrent.futures
import functools
import json
import math
import multiprocessing
import os
import select
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import files_readers
import files_written

FOUR = ("l_quantity", "l_extendedprice", "l_discount", "l_shipdate")
OURS = "warpframe"
# Engines in the order of their runs, with what their process is told.
CORES = str(len(os.sched_getaffinity(0)))
ENGINES = {
    OURS: {},
    "libcudf": {},
    "libcudf-threads": {"KVIKIO_NTHREADS": CORES, "LIBCUDF_NUM_HOST_WORKERS": CORES},
    "polars": {},
    "pyarrow": {},
    "duckdb": {},
}
BUS_BYTES = 256 << 20
# Seconds of a process of ours.
OUR_LIMIT = 120


@dataclass(frozen=True)
class Case:
    """Columns of a file (all, where none are named), or batches of a kind."""

    name: str
    group: str
    file: str = ""
    columns: tuple = ()
    batches: str = ""


CASES = [
    *(Case(f"lineitem-{codec}", "lineitem", f"lineitem-{codec}") for codec in files_written.CODECS),
    *(Case(f"lineitem-{codec}-4", "lineitem", f"lineitem-{codec}", FOUR) for codec in files_written.CODECS),
    *(Case(f"writer-{who}", "writers", f"writer-{who}") for who in ("duckdb", "pyarrow", "polars")),
    *(Case(f"pages-{size}", "pages", f"pages-{size}") for size in ("64k", "1m")),
    Case("wide", "wide", "wide"),
    Case("small", "small", "small"),
    Case("strings-few", "strings", "strings-few"),
    Case("strings-many", "strings", "strings-many"),
    Case("nulls", "nulls", "nulls"),
    *(Case(f"batches-{what}", "batches", batches=what) for what in files_readers.BATCH_COLUMNS),
]
BATCH_ROWS = 20_000_000


class Peer:
    """A process of files_readers.py; one that ended is started anew for the next request."""

    def __init__(self, name, log):
        self.name, self.log, self.process, self.absent, self.version = name, log, None, None, None

    def start(self):
        program = Path(__file__).with_name("files_readers.py")
        command = [sys.executable, str(program), self.name.removesuffix("-threads")]
        environment = {**os.environ, **ENGINES.get(self.name, {})}
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.log, env=environment)
        said = self.hear(60)
        self.version = said.get("ready")
        if not self.version:
            self.absent = said.get("absent") or said["error"]
            self.end()

    def hear(self, limit):
        """The next answer; without one the process is ended."""
        if not select.select([self.process.stdout], [], [], limit)[0]:
            self.end()
            return {"error": f"no answer within {limit:.0f} s"}
        line = self.process.stdout.readline()
        if not line:
            self.process.wait()
            status = self.process.returncode
            self.end()
            return {"error": f"its process ended with status {status}"}
        return json.loads(line)

    def ask(self, request, limit):
        if self.absent is None and self.process is None:
            self.start()
        if self.absent is not None:
            return {"absent": self.absent}
        try:
            self.process.stdin.write(json.dumps(request).encode() + b"\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            self.end()
            return {"error": "its process has ended"}
        answer = self.hear(limit)
        # After an error CUDA may refuse everything in this process.
        if "error" in answer:
            self.end()
        return answer

    def end(self):
        if self.process is not None:
            self.process.kill()
            self.process.communicate()
            self.process = None


def described(case, path, scale):
    """What a case has: its rows, its columns, the bytes that are to be read, and its files."""
    if case.batches:
        rows, columns = scale.rows(BATCH_ROWS), files_readers.BATCH_COLUMNS[case.batches]
        # Strings of 37 bytes and an offset.
        width = 8 if case.batches != "strings" else 37 + 4
        return {"rows": rows, "columns": columns, "bytes": rows * columns * width}, []
    import pyarrow.parquet as pq

    files = sorted(path.iterdir()) if path.is_dir() else [path]
    rows = size = 0
    for file in files:
        footer = pq.read_metadata(file)
        rows += footer.num_rows
        names = footer.schema.names
        chosen = [at for at, name in enumerate(names) if name in case.columns]
        size += file.stat().st_size if not case.columns else sum(
            footer.row_group(group).column(at).total_compressed_size for group in range(footer.num_row_groups) for at in chosen
        )
    return {"rows": rows, "columns": len(case.columns or names), "bytes": size}, [str(file) for file in files]


@functools.cache
def said_by(command, limit):
    """What the executable printed on its output and its error output, or why there is nothing."""
    environment = {"WARPFRAME_DEVICE": "cuda", **os.environ}
    try:
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=limit)
    except OSError as error:
        return None, {"absent": str(error)}
    except subprocess.TimeoutExpired:
        return None, {"error": f"no answer within {limit:.0f} s"}
    if done.returncode:
        told = (done.stderr.strip() or done.stdout.strip() or "nothing was printed").splitlines()
        return None, {"error": f"status {done.returncode}: {told[-1]}"}
    return (done.stdout.splitlines(), done.stderr.splitlines()), None


def ours(bench, case, path, rows, runs, checks=False):
    """What our executable measures of a case. Batches of all kinds are one run of it."""
    what = ["--batches", str(rows)] if case.batches else [str(path), *([",".join(case.columns)] if case.columns else [])]
    printed, failure = said_by((bench, *what, "--runs", str(runs), *(["--check"] if checks else [])), OUR_LIMIT)
    if failure:
        return failure
    lines = [json.loads(line) for line in printed[0] if line.startswith("{")]
    if case.batches:
        lines = [line for line in lines if line["bench"] == f"host batches of {case.batches}"]
    if len(lines) != 1 or "ms" not in lines[0]:
        return {"error": f"it printed {len(lines)} results of {case.name}"}
    kernels = [line.strip() for line in printed[1] if " ms " in line]
    kept = {name: lines[0][name] for name in ("ms", "first_ms", "rows", "column_GBps", "host_MB", "gpu") if name in lines[0]}
    return {**kept, "runs": runs, **({"kernels": kernels} if kernels else {})}


class Run:
    """The cases, their files, and where results go."""

    def __init__(self, options, cases):
        self.options, self.cases, self.scale = options, cases, files_written.Scale(options.scale)
        self.begun = time.monotonic()
        self.out = open(options.out, "w", encoding="utf-8")
        self.log = open(f"{options.out}.err", "w", encoding="utf-8")
        self.failed, self.known = {}, {}

    def say(self, line):
        print(json.dumps(line), file=self.out, flush=True)

    def tell(self, text):
        print(f"{time.monotonic() - self.begun:6.1f} s  {text}", file=sys.stderr, flush=True)

    def write_files(self):
        """Files that cases need, side by side; first those of which others are made."""
        names = list(dict.fromkeys(case.file for case in self.cases if case.file))
        # The ones that one thread writes for long begin first.
        names.sort(key=lambda name: name not in ("strings-many", "wide", "nulls"))
        sources = list(dict.fromkeys(filter(None, map(files_written.source_of, names))))
        Path(self.options.scratch).mkdir(parents=True, exist_ok=True)
        context = multiprocessing.get_context("spawn")
        with concurrent.futures.ProcessPoolExecutor(self.options.writers, mp_context=context) as pool:
            for stage in (sources, names):
                stage = [name for name in stage if files_written.source_of(name) not in self.failed]
                jobs = {pool.submit(files_written.write, name, self.options.scratch, self.scale): name for name in stage}
                for job in concurrent.futures.as_completed(jobs):
                    error = job.exception()
                    if error is not None:
                        self.failed[jobs[job]] = f"{type(error).__name__}: {error}"
                    self.tell(f"{jobs[job]}: {self.failed.get(jobs[job], 'written')}")
        for name in names:
            source = files_written.source_of(name)
            if source in self.failed:
                self.failed[name] = f"{source}: {self.failed[source]}"
        for case in self.cases:
            if case.file in self.failed:
                continue
            path = self.path(case)
            self.known[case.name] = described(case, path, self.scale)
        os.sync()
        for file in {file for _, files in self.known.values() for file in files}:
            with open(file, "rb", buffering=0) as source:
                while source.read(64 << 20):
                    pass
        self.tell("files are in the page cache")

    def path(self, case):
        return files_written.path_of(case.file, self.options.scratch, self.scale) if case.file else None

    def machine(self):
        bus = Peer("bus", self.log)
        answer = {"GBps": self.options.bus} if self.options.bus else bus.ask({"copy": BUS_BYTES}, 60)
        bus.end()
        self.tell("bus: " + (f"{answer['GBps']:.1f} GB/s" if "GBps" in answer else str(answer)))
        about = {"cores": int(CORES), "gpu": answer.get("gpu"), "scale": self.scale.factor}
        missing = answer.get("absent") or answer.get("error")
        self.say({"machine": about, "bus_GBps": answer.get("GBps"), "bus_missing": missing})

    def report(self, case, engine, answer):
        facts = self.known.get(case.name, ({}, []))[0]
        line = {"case": case.name, "engine": engine, **facts, **answer}
        if "ms" in answer:
            if answer["rows"] != facts["rows"]:
                wrong = f"{answer['rows']} rows instead of {facts['rows']}"
                line = {"case": case.name, "engine": engine, **facts, "error": wrong}
            else:
                line["GBps"] = facts["bytes"] / answer["ms"] / 1e6
        self.say(line)
        if "ms" in line:
            self.tell(f"{case.name} by {engine}: {line['ms']:.2f} ms")
        elif "error" in line:
            self.tell(f"{case.name} by {engine}: {line['error'][:300]}")

    def compile_kernels(self):
        """Each case once by processes side by side: their kernels are kept on disk. With --check, why values are not right."""
        checks = self.options.check

        def once(case):
            rows = min(self.known[case.name][0]["rows"], 1_000_000)
            return ours(self.options.bench, case, self.path(case), rows, 1, checks and not case.batches)

        # One case of batches stands for all.
        cases = {case.batches and "batches" or case.name: case for case in self.cases if case.name in self.known}
        with concurrent.futures.ThreadPoolExecutor(2 if checks else 4) as pool:
            answers = dict(zip((case.name for case in cases.values()), pool.map(once, cases.values())))
        self.tell("kernels are compiled" + (", values are compared" if checks else ""))
        return {name: answer for name, answer in answers.items() if checks and "ms" not in answer}

    def late(self):
        return time.monotonic() - self.begun > self.options.time

    def run(self):
        self.write_files()
        self.machine()
        for engine in self.options.engines:
            failed = self.compile_kernels() if engine == OURS else {}
            peer = Peer(engine, self.log)
            for case in self.cases:
                self.report(case, engine, self.answer(case, engine, peer, failed))
            peer.end()
            if engine != OURS:
                self.say({"engine": engine, "version": peer.version, "environment": ENGINES[engine]})
        self.out.close()

    def answer(self, case, engine, peer, failed):
        if case.file in self.failed:
            return {"error": f"no file: {self.failed[case.file]}"}
        if case.name in failed:
            return failed[case.name]
        if self.late():
            return {"error": "not run: the time was over"}
        facts, files = self.known[case.name]
        if engine == OURS:
            return ours(self.options.bench, case, self.path(case), facts["rows"], self.options.runs)
        limits = {"runs": self.options.runs, "seconds": self.options.seconds}
        if case.batches:
            if not engine.startswith("libcudf"):
                return {"absent": "it computes in host memory, where the batches are"}
            if engine != "libcudf":
                return {"absent": "it brings batches as libcudf does"}
            return peer.ask({"batches": case.batches, "rows": facts["rows"], **limits}, 120)
        return peer.ask({"paths": files, "columns": list(case.columns) or None, **limits}, self.options.limit)


def cell(line, short):
    """A time and its rate, or a mark whose reason stands below the table."""
    if line is None:
        return ""
    if "ms" not in line:
        return "absent" if "absent" in line else "error"
    note = "" if line["runs"] >= short else f" ×{line['runs']}" if line["runs"] else " first"
    return f"{number(line['ms'])}{note} ({number(line['GBps'])})"


def number(value):
    return f"{value:.3f}" if value < 1 else f"{value:.2f}" if value < 10 else f"{value:.1f}" if value < 100 else f"{value:,.0f}"


def table(paths):
    """The table of result files, and below it why figures are missing."""
    lines = [json.loads(line) for path in paths for line in open(path, encoding="utf-8")]
    machines = [line for line in lines if "machine" in line]
    found, bus_of, engines, current = {}, {}, [], None
    for line in lines:
        if "machine" in line:
            current = line["bus_GBps"]
        elif "case" in line:
            found[line["case"], line["engine"]] = line
            bus_of[line["case"]] = current
            engines += [line["engine"]] if line["engine"] not in engines else []
    peers = [engine for engine in engines if engine != OURS]
    runs = max((line.get("runs", 0) for line in found.values()), default=0)
    for line in machines:
        about = line["machine"]
        rate = f"bus {line['bus_GBps']:.1f} GB/s" if line["bus_GBps"] else f"bus unknown ({line['bus_missing']})"
        print(f"{about['gpu'] or 'no GPU seen'}, {about['cores']} cores, {rate}, scale {about['scale']:g}. Times in ms (GB/s).\n")
    versions = {line["engine"]: line["version"] for line in lines if line.get("version")}
    print(", ".join(f"{engine} {version}" for engine, version in versions.items()) + "\n")
    head = ["case", "rows", "columns", "MB", OURS, "first read", "of the bus", *peers, "ours ÷ best peer"]
    print("| " + " | ".join(head) + " |")
    print("|---" * len(head) + "|")
    for name in dict.fromkeys(case for case, _ in found):
        mine = found.get((name, OURS))
        theirs = [found.get((name, peer)) for peer in peers]
        facts = next((line for line in (mine, *theirs) if line and "rows" in line), {})
        best = min((line["ms"] for line in theirs if line and "ms" in line), default=None)
        timed = mine is not None and "ms" in mine
        share = f"{mine['GBps'] / bus_of[name]:.0%}" if timed and bus_of[name] else "–"
        ratio = number(mine["ms"] / best) if timed and best else "–"
        first = number(mine["first_ms"]) if timed else "–"
        shape = [f"{facts['rows']:,}", str(facts["columns"]), f"{facts['bytes'] / 1e6:,.1f}"] if facts else ["–"] * 3
        cells = [name, *shape, cell(mine, runs), first, share, *(cell(line, runs) for line in theirs), ratio]
        print("| " + " | ".join(cells) + " |")
    reasons = collections.defaultdict(list)
    for (name, engine), line in found.items():
        if "ms" not in line:
            kind = "absent" if "absent" in line else "error"
            reasons[f"{engine}, {kind}: {line[kind]}"].append(name)
    print()
    cases = {name for name, _ in found}
    for reason, names in reasons.items():
        print(f"- {reason[:400]} ({'all cases' if len(names) == len(cases) else ', '.join(names)})")


def chosen(text, what, of):
    """Names of a list, each of which there has to be."""
    names = text.split(",")
    unknown = [name for name in names if name not in of]
    if unknown:
        sys.exit(f"no {what} {', '.join(unknown)}; there are {', '.join(of)}")
    return names


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bench", help="the executable of the benchmark `files`")
    parser.add_argument("--out", help="JSON lines, one a case and engine")
    parser.add_argument("--scratch", default="/tmp/files-beside-peers", help="folder of the files; they are kept")
    parser.add_argument("--cases", help="names of cases or of groups of them, default: all")
    parser.add_argument("--engines", default=",".join(ENGINES), help="default: %(default)s")
    parser.add_argument("--scale", type=float, default=1, help="size of all files, default 1: lineitem at scale factor 10")
    parser.add_argument("--runs", type=int, default=5, help="reads after the first, default 5")
    parser.add_argument("--seconds", type=float, default=2, help="of a case and peer, after which no read begins, default 2")
    parser.add_argument("--limit", type=float, default=30, help="seconds until a peer's case is given up, default 30")
    parser.add_argument("--time", type=float, default=math.inf, help="seconds after which no case begins")
    parser.add_argument("--writers", type=int, default=min(16, 2 * int(CORES)), help="files that are written at a time")
    parser.add_argument("--bus", type=float, help="GB/s of the bus, where CuPy does not measure it")
    parser.add_argument("--check", action="store_true", help="compare our values with the CPU engine's, which takes longer")
    parser.add_argument("--report", nargs="+", metavar="OUT", help="print the table of results")
    parser.add_argument("--list", action="store_true", help="print the cases")
    options = parser.parse_args()
    if options.list:
        for case in CASES:
            print(f"{case.group:10} {case.name}")
        return
    if options.report:
        table(options.report)
        return
    if not options.bench or not options.out:
        parser.error("--bench and --out are needed")
    options.engines = chosen(options.engines, "engine", ENGINES)
    cases = CASES
    if options.cases:
        names = chosen(options.cases, "case", [name for case in CASES for name in (case.group, case.name)])
        cases = [case for case in CASES if case.name in names or case.group in names]
    Run(options, cases).run()
    table([options.out])


if __name__ == "__main__":
    main()
