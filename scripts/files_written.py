"""The Parquet files that files_beside_peers.py has read: who writes them, and of what.

A file is written into a scratch directory under a name that holds its scale, through a temporary name, so that one that is
there is whole and is not written again. Values are drawn from fixed seeds. pyarrow, NumPy and tpcgen-cli are needed; DuckDB
and polars write the files that bear their names.
"""
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

# Rows of a row group, where nothing else is said: what pyarrow takes.
GROUP = 1 << 20
CODECS = {"snappy": "SNAPPY", "zstd": "ZSTD(1)", "none": "UNCOMPRESSED", "lz4": "LZ4_RAW"}
WIDE_COLUMNS, WIDE_GROUPS = 512, 50
SMALL_FILES = 1000


@dataclass(frozen=True)
class Scale:
    """Sizes of all files: each is its size at scale 1 times `factor`."""

    factor: float

    def rows(self, rows):
        return max(1, round(rows * self.factor))

    def factor_of(self, lineitem):
        """TPC-H's scale factor of a lineitem; tpcgen-cli takes none below that."""
        return max(0.001, lineitem * self.factor)


def path_of(name, scratch, scale):
    """Where a file lies, or the folder of the small ones."""
    return Path(scratch) / (f"{name}-x{scale.factor:g}" + ("" if name == "small" else ".parquet"))


def write(name, scratch, scale):
    """Writes a file, unless it is there."""
    path = path_of(name, scratch, scale)
    if path.exists():
        return path
    part = path.with_name(path.name + ".part")
    shutil.rmtree(part, ignore_errors=True)
    part.unlink(missing_ok=True)
    WRITERS[name](part, scale)
    part.rename(path)
    return path


def source_of(name):
    """The file that another is made of, which has to be there before."""
    return "lineitem-small" if name.startswith(("writer-", "pages-")) else None


def tpcgen(codec, scale_factor):
    def run(part, scale):
        beside = [os.path.join(folder, "bin") for folder in sys.path] + [os.path.dirname(sys.executable)]
        program = shutil.which("tpcgen-cli") or shutil.which("tpcgen-cli", path=os.pathsep.join(beside))
        if program is None:
            raise FileNotFoundError("tpcgen-cli is not installed")
        folder = part.with_name(part.name + ".folder")
        # Wheels that were unpacked by tar or zip may have lost the bit.
        os.chmod(program, 0o755)
        command = [program, "tpch", "parquet", "--quiet", "--overwrite", "--tables=lineitem", f"--compression={codec}",
                   f"--scale-factor={scale.factor_of(scale_factor):g}", f"--output-dir={folder}"]
        subprocess.run(command, check=True)
        (folder / "lineitem.parquet").rename(part)
        shutil.rmtree(folder)

    return run


def small_lineitem(part):
    """The lineitem that writers are compared over: it lies beside their files."""
    factor = part.name.removesuffix(".parquet.part").rpartition("-x")[2]
    return part.with_name(f"lineitem-small-x{factor}.parquet")


def by_pyarrow(**options):
    def run(part, _):
        import pyarrow.parquet as pq

        pq.write_table(pq.read_table(small_lineitem(part)), part, **options)

    return run


def by_duckdb(part, _):
    import duckdb

    duckdb.connect().execute(f"COPY (SELECT * FROM read_parquet('{small_lineitem(part)}')) TO '{part}' (FORMAT parquet)")


def by_polars(part, _):
    import polars

    polars.read_parquet(small_lineitem(part)).write_parquet(part)


def numbers(random, column, rows):
    """Columns of numbers by turns: 64-bit integers of up to a million values, doubles, 32-bit integers of a thousand."""
    import numpy

    if column % 3 == 0:
        return random.integers(0, 1_000_000, rows)
    return random.random(rows) if column % 3 == 1 else random.integers(0, 1000, rows, dtype=numpy.int32)


def wide(part, scale):
    import numpy
    import pyarrow
    import pyarrow.parquet as pq

    random, rows, writer = numpy.random.default_rng(1), scale.rows(10_000), None
    for _ in range(WIDE_GROUPS):
        columns = {f"c{at:03}": numbers(random, at, rows) for at in range(WIDE_COLUMNS)}
        table = pyarrow.table(columns)
        writer = writer or pq.ParquetWriter(part, table.schema)
        writer.write_table(table)
    writer.close()


def small(part, scale):
    import numpy
    import pyarrow
    import pyarrow.parquet as pq

    part.mkdir()
    random, rows = numpy.random.default_rng(2), scale.rows(10_000)
    for file in range(SMALL_FILES):
        columns = {f"c{at}": numbers(random, at, rows) for at in range(7)}
        columns["word"] = words(random, rows)
        pq.write_table(pyarrow.table(columns), part / f"part-{file:04}.parquet")


def words(random, rows, mask=None):
    """Strings of a hundred values."""
    import pyarrow

    values = pyarrow.array([f"word {at * 7919 % 10_000:04}" for at in range(100)])
    return values.take(pyarrow.array(random.integers(0, len(values), rows), mask=mask))


def distinct(random, first, rows):
    """Strings of 16 to 24 bytes that all differ: the row's number, scrambled one to one, then random letters."""
    import numpy
    import pyarrow

    scrambled = (numpy.arange(first, first + rows, dtype=numpy.uint64) * 0x9E3779B1) & 0xFFFFFFFF
    digits = numpy.frombuffer(b"0123456789abcdef", numpy.uint8)
    text = digits[random.integers(0, 16, (rows, 24), dtype=numpy.uint8)]
    for at in range(8):
        text[:, at] = digits[(scrambled >> numpy.uint64(28 - 4 * at)) & numpy.uint64(15)]
    lengths = random.integers(16, 25, rows)
    offsets = numpy.zeros(rows + 1, numpy.int32)
    numpy.cumsum(lengths, out=offsets[1:])
    kept = text[numpy.arange(24) < lengths[:, None]]
    return pyarrow.StringArray.from_buffers(rows, pyarrow.py_buffer(offsets), pyarrow.py_buffer(kept))


def with_nulls(random, _, rows):
    """Numbers and strings of which three in ten are null, at random."""
    import pyarrow

    masks = [random.random(rows) < 0.3 for _ in range(3)]
    return {
        "i": pyarrow.array(random.integers(0, 1 << 40, rows), mask=masks[0]),
        "x": pyarrow.array(random.random(rows), mask=masks[1]),
        "s": words(random, rows, masks[2]),
    }


def in_groups(rows, columns):
    """A file of row groups, each made by `columns(random, its first row, its rows)`."""

    def run(part, scale):
        import numpy
        import pyarrow
        import pyarrow.parquet as pq

        random, writer, total = numpy.random.default_rng(3), None, scale.rows(rows)
        for first in range(0, total, GROUP):
            table = pyarrow.table(columns(random, first, min(GROUP, total - first)))
            writer = writer or pq.ParquetWriter(part, table.schema)
            writer.write_table(table)
        writer.close()

    return run


# pyarrow ends a page after some number of rows, too: pages are to be as large as is asked for.
PAGE = {"max_rows_per_page": 1 << 30}
WRITERS = {
    **{f"lineitem-{name}": tpcgen(codec, 10) for name, codec in CODECS.items()},
    "lineitem-small": tpcgen("SNAPPY", 1),
    "writer-duckdb": by_duckdb,
    "writer-pyarrow": by_pyarrow(),
    "writer-polars": by_polars,
    "pages-64k": by_pyarrow(data_page_size=64 << 10, **PAGE),
    "pages-1m": by_pyarrow(data_page_size=1 << 20, **PAGE),
    "wide": wide,
    "small": small,
    "strings-few": in_groups(50_000_000, lambda random, _, rows: {"s": words(random, rows)}),
    "strings-many": in_groups(50_000_000, lambda *of: {"s": distinct(*of)}),
    "nulls": in_groups(50_000_000, with_nulls),
}
