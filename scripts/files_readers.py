#!/usr/bin/env python3
"""A peer in a process of its own, as files_beside_peers.py starts it: requests are JSON lines of the standard input, answers
those of the standard output.

  files_readers.py libcudf|polars|pyarrow|duckdb|bus

First it says {"ready": VERSION} or {"absent": REASON}. Then it is asked for
  {"paths": [...], "columns": [...] or null, "runs": 5, "seconds": 2}   a table of these files, the columns or all
  {"batches": "i64"|"f64"|"strings", "rows": N, "runs": 5, "seconds": 2}   batches of Arrow into device memory
  {"copy": BYTES}                                                         pinned host memory into device memory
and answers {"ms", "first_ms", "runs", "rows"}, or {"error": TEXT}. `ms` is the median of the reads after the first: as many
as begin before `seconds` are over, at most `runs`; of the first alone (runs 0) where that took all of the time.
"""
import json
import os
import statistics
import sys
import time

# Rows of a batch, as `files --batches` makes them.
BATCH = 1 << 20
# Columns of each kind of batches, as there.
BATCH_COLUMNS = {"i64": 8, "f64": 8, "strings": 2}


class Libcudf:
    def __init__(self):
        import cupy
        import pylibcudf
        import rmm

        rmm.mr.set_current_device_resource(rmm.mr.CudaAsyncMemoryResource())
        self.plc, self.device = pylibcudf, cupy.cuda.Device()
        self.device.synchronize()
        from importlib.metadata import version

        self.version = next(version(name) for name in ("pylibcudf-cu13", "pylibcudf-cu12", "pylibcudf") if installed(name))

    def read(self, paths, columns):
        parquet = self.plc.io.parquet
        options = parquet.ParquetReaderOptions.builder(self.plc.io.SourceInfo(paths))
        if columns:
            options = options.column_names(columns)
        table = parquet.read_parquet(options.build()).tbl
        self.device.synchronize()
        return table

    def batches(self, table):
        table = self.plc.Table.from_arrow(table)
        self.device.synchronize()
        return table

    def rows(self, table):
        return table.num_rows()


class Polars:
    def __init__(self):
        import polars

        self.polars, self.version = polars, polars.__version__

    def read(self, paths, columns):
        return self.polars.read_parquet(paths, columns=columns)

    def rows(self, table):
        return table.height


class PyArrow:
    def __init__(self):
        import pyarrow
        import pyarrow.dataset
        import pyarrow.parquet

        self.pyarrow, self.version = pyarrow, pyarrow.__version__

    def read(self, paths, columns):
        if len(paths) == 1:
            return self.pyarrow.parquet.read_table(paths[0], columns=columns)
        return self.pyarrow.dataset.dataset(paths).to_table(columns=columns)

    def rows(self, table):
        return table.num_rows


class DuckDB:
    def __init__(self):
        import duckdb
        import pyarrow  # noqa: F401 -- what its tables are fetched as

        self.connection, self.version = duckdb.connect(), duckdb.__version__

    def read(self, paths, columns):
        names = ", ".join(f'"{name}"' for name in columns) if columns else "*"
        files = ", ".join("'" + path.replace("'", "''") + "'" for path in paths)
        return self.connection.sql(f"SELECT {names} FROM read_parquet([{files}])").to_arrow_table()

    def rows(self, table):
        return table.num_rows


class Bus:
    """What the bus can do: copies of pinned host memory by CuPy."""

    def __init__(self):
        import cupy

        self.cupy, self.version = cupy, cupy.__version__
        cupy.cuda.Device().synchronize()

    def copy(self, size):
        cupy = self.cupy
        host, device = cupy.cuda.alloc_pinned_memory(size), cupy.cuda.alloc(size)
        stream, start, end = cupy.cuda.Stream(non_blocking=True), cupy.cuda.Event(), cupy.cuda.Event()
        times = []
        for _ in range(10):
            start.record(stream)
            device.copy_from_host_async(host.ptr, size, stream)
            end.record(stream)
            end.synchronize()
            times.append(cupy.cuda.get_elapsed_time(start, end))
        properties = cupy.cuda.runtime.getDeviceProperties(cupy.cuda.Device().id)
        return {"ms": min(times), "GBps": size / min(times) / 1e6, "gpu": properties["name"].decode()}


PEERS = {"libcudf": Libcudf, "polars": Polars, "pyarrow": PyArrow, "duckdb": DuckDB, "bus": Bus}


def installed(name):
    from importlib.metadata import PackageNotFoundError, version

    try:
        version(name)
        return True
    except PackageNotFoundError:
        return False


def arrow_batches(what, rows):
    """The columns that `files --batches` makes, in its batches; those of one batch are one array."""
    import numpy
    import pyarrow

    batches = []
    for first in range(0, rows, BATCH):
        words = numpy.arange(first, min(first + BATCH, rows), dtype=numpy.uint64) * 0x9E3779B97F4A7C15 >> numpy.uint64(20)
        if what == "i64":
            array = pyarrow.array(words.astype(numpy.int64))
        elif what == "f64":
            array = pyarrow.array(words / 64.0)
        else:
            prefix = numpy.frombuffer(b"a string of many values, ", numpy.uint8)
            text = numpy.empty((len(words), len(prefix) + 12), numpy.uint8)
            text[:, : len(prefix)] = prefix
            numbers = words % 1_000_000_000
            for at in range(12):
                text[:, text.shape[1] - 1 - at] = numbers // 10**at % 10 + ord("0")
            offsets = numpy.arange(len(words) + 1, dtype=numpy.int32) * text.shape[1]
            array = pyarrow.StringArray.from_buffers(len(words), pyarrow.py_buffer(offsets), pyarrow.py_buffer(text))
        columns = {f"c{at}": array for at in range(BATCH_COLUMNS[what])}
        batches.append(pyarrow.record_batch(columns))
    return pyarrow.Table.from_batches(batches)


def timed(peer, read, runs, seconds):
    """Times of reads; that a table is given back is not timed."""
    times, begun = [], time.perf_counter()
    while len(times) <= runs and (not times or time.perf_counter() - begun < seconds):
        start = time.perf_counter()
        table = read()
        times.append((time.perf_counter() - start) * 1e3)
        rows = peer.rows(table)
        del table
    return {"ms": statistics.median(times[1:] or times), "first_ms": times[0], "runs": len(times) - 1, "rows": rows}


def answer(peer, request):
    limits = (request.get("runs"), request.get("seconds"))
    if "paths" in request:
        return timed(peer, lambda: peer.read(request["paths"], request["columns"]), *limits)
    if "copy" in request:
        return peer.copy(request["copy"])
    # Peers may bring one large batch faster than many: the better of both counts.
    table = arrow_batches(request["batches"], request["rows"])
    many = timed(peer, lambda: peer.batches(table), *limits)
    whole = table.combine_chunks()
    one = timed(peer, lambda: peer.batches(whole), *limits)
    return {**min(many, one, key=lambda way: way["ms"]), "batches_ms": many["ms"], "one_batch_ms": one["ms"]}


def main():
    # Libraries may print, too: that goes to the standard error.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)

    def say(what):
        print(json.dumps(what), file=answers, flush=True)

    try:
        peer = PEERS[sys.argv[1]]()
    # What may be wrong with an installation is the installation's choice; its reason is printed.
    except Exception as error:
        say({"absent": f"{type(error).__name__}: {error}"})
        return
    say({"ready": peer.version})
    for line in sys.stdin:
        try:
            say(answer(peer, json.loads(line)))
        except Exception as error:
            say({"error": f"{type(error).__name__}: {error}"})


if __name__ == "__main__":
    main()
