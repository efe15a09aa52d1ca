"""Checks that files which warpframe writes have the same values and types for others, and are of use to them.

    python3 scripts/check-written.py target/debug/warpframe [--device sim]

A table with a column of every type that the writers know, with its least and greatest values, the empty one and NULL, is
written by COPY in all formats and with their options. DuckDB and pyarrow read the files, and the values are compared. Then
pyarrow, polars, DuckDB and pandas read each file and filter, sort and join it by each of its columns: a table says by how
many they can, and what they cannot is an error unless it is theirs (`LIMITS`). duckdb, pyarrow, polars and pandas are needed.
"""
import argparse
import datetime
import decimal
import math
import subprocess
import sys
import tempfile
from importlib.util import find_spec
from pathlib import Path

import duckdb
import pandas
import polars
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pa_csv
import pyarrow.ipc as ipc
import pyarrow.json as pa_json
import pyarrow.parquet as pq

DAY = 86_400
FAR, LEAP = 253_402_214_400, 1_709_164_800  # 9999-12-31, 2024-02-29


def numbers(values, dtype):
    """Times by their counts of units."""
    counts = pa.int32() if dtype.bit_width == 32 else pa.int64()
    return pa.array(values, counts).cast(dtype)


def texts(values, dtype):
    return pa.array([None if value is None else decimal.Decimal(value) for value in values], dtype)


def columns():
    """Name, type in arrow_cast, expected values; the SQL texts that the values are cast from."""
    nan, inf = math.nan, math.inf
    ints = [("i8", "Int8", pa.int8(), -(2**7), 2**7 - 1), ("i16", "Int16", pa.int16(), -(2**15), 2**15 - 1),
            ("i32", "Int32", pa.int32(), -(2**31), 2**31 - 1), ("i64", "Int64", pa.int64(), -(2**63), 2**63 - 1),
            ("u8", "UInt8", pa.uint8(), 0, 2**8 - 1), ("u16", "UInt16", pa.uint16(), 0, 2**16 - 1),
            ("u32", "UInt32", pa.uint32(), 0, 2**32 - 1), ("u64", "UInt64", pa.uint64(), 0, 2**64 - 1)]
    for name, dtype, arrow, least, most in ints:
        yield name, dtype, pa.array([least, most, 7, None], arrow), [str(least), str(most), "7", None]
    yield "b", "Boolean", pa.array([True, False, True, None]), ["true", "false", "true", None]
    yield "f32", "Float32", pa.array([0.1, nan, -inf, None], pa.float32()), ["0.1", "NaN", "-inf", None]
    yield "f64", "Float64", pa.array([0.1, nan, -0.0, None], pa.float64()), ["0.1", "NaN", "-0.0", None]
    for digits, scale in [(9, 2), (18, 3), (38, 6)]:
        most = "9" * (digits - scale) + "." + "9" * scale
        values = [f"-{most}", most, "0." + "0" * (scale - 1) + "1", None]
        yield f"d{digits}", f"Decimal128({digits}, {scale})", texts(values, pa.decimal128(digits, scale)), values
    days = [datetime.date(1, 1, 1), datetime.date(9999, 12, 31), datetime.date(1969, 12, 31), None]
    yield "day", "Date32", pa.array(days), ["0001-01-01", "9999-12-31", "1969-12-31", None]
    for unit, name, per in [("s", "Second", 1), ("ms", "Millisecond", 10**3), ("us", "Microsecond", 10**6),
                            ("ns", "Nanosecond", 10**9)]:
        last = "" if per == 1 else "." + "9" * (len(str(per)) - 1)
        one = "" if per == 1 else "." + "1".rjust(len(str(per)) - 1, "0")
        arrow = pa.time32(unit) if per <= 1000 else pa.time64(unit)
        texts_of = [f"23:59:59{last}", "00:00:00", f"12:00:00{one}", None]
        counts = [DAY * per - 1, 0, DAY // 2 * per + (per > 1), None]
        yield f"t_{unit}", f"Time{arrow.bit_width}({name})", numbers(counts, arrow), texts_of
        far, day = (LEAP, "2024-02-29") if unit == "ns" else (FAR, "9999-12-31")
        texts_of = [f"1969-12-31 23:59:59{one}", f"{day} 00:00:00", "1970-01-01 00:00:00", None]
        counts = [-per + (per > 1), far * per, 0, None]
        yield f"ts_{unit}", f"Timestamp({name}, None)", numbers(counts, pa.timestamp(unit)), texts_of
        zoned = [text and text + "Z" for text in texts_of]
        yield f"tz_{unit}", f'Timestamp({name}, Some("UTC"))', numbers(counts, pa.timestamp(unit, "UTC")), zoned
    words = ['x,"y"', "", "é\nü", None]
    yield "s", "Utf8", pa.array(words), words
    yield "coded", "Dictionary(Int32, Utf8)", pa.array(["a", "b", "a", None]), ["a", "b", "a", None]


# Of these there are no texts to cast from.
NESTED = {
    "bin": ("arrow_cast({0}, 'Binary')", pa.array([b"ab", b"", "é".encode(), None]), ["'ab'", "''", r"'\xC3\xA9'", None]),
    "l": ("{0}", pa.array([[1, None, 3], [], [7], None]), ["[1, NULL, 3]", "[]", "[7]", None]),
    "st": ("{0}", pa.array([{"p": 1, "q": "x"}, {"p": None, "q": ""}, {"p": 2, "q": None}, None]),
           ["named_struct('p', 1, 'q', 'x')", "named_struct('p', NULL, 'q', '')", "named_struct('p', 2, 'q', NULL)", None]),
}

# What the format has no word for is written as this instead.
WRITTEN = {"parquet": {pa.time32("s"): pa.time32("ms"), pa.timestamp("s"): pa.timestamp("ms"),
                       pa.timestamp("s", "UTC"): pa.timestamp("ms", "UTC")}}


def table():
    """The expected table, and the SQL that makes it."""
    expected, items = {"n": pa.array([1, 2, 3, 4])}, []
    for name, dtype, values, said in columns():
        cases = " ".join(f"WHEN {n} THEN '{text.replace(chr(39), chr(39) * 2)}'" for n, text in enumerate(said, 1) if text is not None)
        items.append(f"arrow_cast(CASE n {cases} END, '{dtype}') AS {name}")
        expected[name] = values
    for name, (form, values, said) in NESTED.items():
        cases = " ".join(f"WHEN {n} THEN {form.format(text)}" for n, text in enumerate(said, 1) if text is not None)
        items.append(f"CASE n {cases} END AS {name}")
        expected[name] = values
    return pa.table(expected), f"SELECT n, {', '.join(items)} FROM (VALUES (1), (2), (3), (4)) v(n)"


def unlike(found, expected):
    """Whether two columns of one type differ, NaN being itself. Within a struct that is null anything may lie."""
    if pa.types.is_struct(found.type):
        return found.to_pylist() != expected.to_pylist()
    return str(found.combine_chunks()) != str(expected.combine_chunks())


def by_pyarrow(name, found, expected):
    for column in expected.column_names:
        wanted = expected[column].type
        wanted = WRITTEN.get(name.rpartition(".")[2], {}).get(wanted, wanted)
        own = found[column]
        # Where strings have long offsets, or views, is the writer's choice.
        alike = {pa.large_string(): pa.string(), pa.string_view(): pa.string(), pa.large_binary(): pa.binary(),
                 pa.binary_view(): pa.binary()}
        if wanted == pa.list_(pa.int64()) or pa.types.is_struct(wanted):
            own = own.cast(wanted)
        dtype = own.type.value_type if pa.types.is_dictionary(own.type) else own.type
        if alike.get(dtype, dtype) != wanted:
            yield f"pyarrow, {name}: column {column} is {own.type}, not {wanted}"
        elif unlike(own.cast(wanted), expected[column].cast(wanted)):
            yield f"pyarrow, {name}: column {column} has {own.combine_chunks()}, not {expected[column].combine_chunks()}"


def by_duckdb(connection, name, reader, expected):
    """Compares by DuckDB's own equality, in the type that the column has in the table."""
    connection.register("expected", expected)
    types = dict(connection.execute(f"SELECT column_name, column_type FROM (DESCRIBE SELECT * FROM {reader})").fetchall())
    wanted = dict(connection.execute("SELECT column_name, column_type FROM (DESCRIBE SELECT * FROM expected)").fetchall())
    for column in expected.column_names:
        differ = f"SELECT f.{column}, e.{column} FROM {reader} f JOIN expected e USING (n) WHERE f.{column} IS DISTINCT FROM e.{column}"
        exact = {"TIMESTAMP_S": "TIMESTAMP", "TIMESTAMP_MS": "TIMESTAMP"}
        own, other = types[column], wanted[column]
        if name.endswith("parquet") and exact.get(own, own) != exact.get(other, other):
            yield f"DuckDB, {name}: column {column} is {own}, not {other}"
        elif found := connection.execute(differ).fetchall():
            yield f"DuckDB, {name}: column {column}: {found}"


class ByPyArrow:
    name = "pyarrow"

    def read(self, path):
        match kind_of(path):
            case "parquet":
                return pq.read_table(path)
            case "arrow":
                return ipc.open_file(path).read_all()
            case "arrows":
                return ipc.open_stream(path).read_all()
            case "csv":
                return pa_csv.read_csv(path, parse_options=pa_csv.ParseOptions(newlines_in_values=True))
            case "ndjson":
                return pa_json.read_json(pa.input_stream(str(path)))

    def columns(self, table):
        return {field.name: str(field.type) for field in table.schema}

    def rows(self, table):
        return table.num_rows

    def filter(self, table, column):
        return table.filter(pc.equal(table[column], table[column][0]))

    def sort(self, table, column):
        return table.sort_by(column)

    def join(self, table, column):
        left = table.select([column]).append_column("number of row", pa.array(range(table.num_rows)))
        return left.join(table.select([column]), column, join_type="inner")


class ByPolars:
    name = "polars"

    def read(self, path):
        match kind_of(path):
            case "parquet":
                return polars.read_parquet(path)
            case "arrow":
                return polars.read_ipc(path)
            case "arrows":
                return polars.read_ipc_stream(path)
            case "csv":
                return polars.read_csv(path)
            case "ndjson":
                return polars.read_ndjson(path)
            case "json":
                return polars.read_json(path)

    def columns(self, table):
        return {name: str(dtype) for name, dtype in table.schema.items()}

    def rows(self, table):
        return table.height

    def filter(self, table, column):
        return table.filter(polars.col(column) == table[column][0])

    def sort(self, table, column):
        return table.sort(column)

    def join(self, table, column):
        return table.select(column).join(table.select(column), on=column)


class ByPandas:
    name = "pandas"

    def read(self, path):
        match kind_of(path):
            # Its own types have no times of nanoseconds.
            case "parquet":
                return pandas.read_parquet(path, dtype_backend="pyarrow")
            case "arrow":
                return pandas.read_feather(path, dtype_backend="pyarrow")
            # Without the package zstandard it reads no zstd.
            case "csv" if path.suffix != ".zst" or find_spec("zstandard"):
                return pandas.read_csv(path)
            # Its own reader refuses numbers of more than 64 bits.
            case "ndjson" if path.suffix == ".ndjson":
                return pandas.read_json(path, lines=True, engine="pyarrow", dtype_backend="pyarrow")

    def columns(self, table):
        return {name: str(dtype) for name, dtype in table.dtypes.items()}

    def rows(self, table):
        return len(table)

    def filter(self, table, column):
        return table[table[column] == table[column].iloc[0]]

    def sort(self, table, column):
        return table.sort_values(column)

    def join(self, table, column):
        return table[[column]].merge(table[[column]], on=column)


class ByDuckDB:
    name = "DuckDB"

    def __init__(self):
        self.connection = duckdb.connect()
        self.connection.execute("SET TimeZone = 'UTC'")

    def read(self, path):
        kind = {"ndjson": "json", "json": "json", "csv": "csv", "parquet": "parquet"}.get(kind_of(path))
        return kind and self.connection.sql(f"SELECT * FROM read_{kind}('{path}')")

    def columns(self, table):
        return dict(zip(table.columns, map(str, table.types)))

    def rows(self, table):
        return len(table.fetchall())

    def of(self, table, query):
        return self.connection.sql(query.replace("TABLE", f"({table.sql_query()})")).fetchall()

    def filter(self, table, column):
        return self.of(table, f'SELECT * FROM TABLE t WHERE "{column}" = (SELECT "{column}" FROM TABLE u LIMIT 1)')

    def sort(self, table, column):
        return self.of(table, f'SELECT * FROM TABLE t ORDER BY "{column}"')

    def join(self, table, column):
        return self.of(table, f'SELECT t."{column}" FROM TABLE t JOIN TABLE u USING ("{column}")')


# What libraries do with no file: by library, work and a word of the column's type.
LIMITS = {
    ("pyarrow", "filter"): ("list", "struct", "map"),
    ("pyarrow", "sort"): ("list", "struct", "map", "interval"),
    ("pyarrow", "join"): ("list", "struct", "map", "interval", "null"),
    ("polars", "filter"): ("List", "Struct"),
    ("polars", "sort"): ("Object",),
    ("polars", "join"): ("Object",),
    ("pandas", "filter"): ("object", "list", "struct"),
    ("pandas", "sort"): ("object", "list", "struct"),
    ("pandas", "join"): ("object", "list", "struct"),
}


def kind_of(path):
    """What a file is, whatever it is compressed with."""
    name = path.name.removesuffix(".gz").removesuffix(".zst")
    return name.rpartition(".")[2]


def used(paths, rows):
    """Has each library read, filter, sort and join each file by each column. A row for each file; what went wrong."""
    libraries = [ByPyArrow(), ByPolars(), ByDuckDB(), ByPandas()]
    table, wrong = [["file"] + [library.name for library in libraries]], []
    for path in paths:
        cells = [path.name]
        for library in libraries:
            try:
                read = library.read(path)
            except Exception as error:
                wrong.append(f"{library.name} reads {path.name}: {type(error).__name__}: {str(error)[:200]}")
                cells.append("not read")
                continue
            if read is None:
                cells.append("-")
                continue
            if library.rows(read) != rows:
                wrong.append(f"{library.name} reads {library.rows(read)} rows of {path.name}")
            columns = library.columns(read)
            done = dict.fromkeys(["filter", "sort", "join"], 0)
            for column, dtype in columns.items():
                for work in done:
                    try:
                        getattr(library, work)(read, column)
                        done[work] += 1
                    except Exception as error:
                        if not any(word in dtype for word in LIMITS.get((library.name, work), ())):
                            text = f"{type(error).__name__}: {str(error)[:120]}".replace("\n", " ")
                            wrong.append(f"{library.name}, {path.name}: {work} by {column} ({dtype}): {text}")
            cells.append(f"{len(columns)}: " + "/".join(str(count) for count in done.values()))
        table.append(cells)
    return table, wrong


def drawn(table):
    widths = [max(len(row[at]) for row in table) for at in range(len(table[0]))]
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip() for row in table]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("warpframe", type=Path)
    parser.add_argument("--device", default="cpu")
    given = parser.parse_args()
    expected, query = table()
    with tempfile.TemporaryDirectory() as folder:
        at = lambda name: str(Path(folder) / name)
        copies = [f"CREATE TABLE t AS {query}"]
        copies += [f"COPY t TO '{at(name)}'" for name in ["t.parquet", "t.arrow", "t.arrows", "t.ndjson"]]
        copies += [f"COPY t TO '{at('t.json')}' (ARRAY true)"]
        copies += [f"COPY t TO '{at(f'{codec}.parquet')}' (COMPRESSION {codec})" for codec in ["snappy", "gzip", "brotli", "lz4", "uncompressed"]]
        copies += [f"COPY t TO '{at(f'{codec}.arrow')}' (COMPRESSION {codec})" for codec in ["lz4", "zstd"]]
        copies += [f"COPY t TO '{at(f'{version}.parquet')}' (PARQUET_VERSION {version}, KV_METADATA {{k: 'v'}}, ROW_GROUP_SIZE 3)" for version in ["V1", "V2"]]
        flat = [name for name in expected.column_names if name not in ("l", "st")]
        copies += [f"COPY (SELECT {', '.join(flat)} FROM t) TO '{at(name)}'" for name in ["t.csv", "t.csv.gz", "t.csv.zst"]]
        copies += [f"COPY (SELECT {', '.join(flat)} FROM t) TO '{at('quoted.csv')}' (FORCE_QUOTE *)"]
        copies += [f"COPY t TO '{at(name)}'" for name in ["nested.csv", "t.ndjson.gz", "t.ndjson.zst"]]
        copies += [f"COPY t TO '{at('folder')}' (FORMAT parquet, PARTITION_BY n, {option})" for option in ["OVERWRITE", "APPEND"]]
        subprocess.run([given.warpframe, "--device", given.device, "-c", ";\n".join(copies)], check=True)

        connection = duckdb.connect()
        connection.execute("SET TimeZone = 'UTC'")
        wrong = []
        for path in sorted(Path(folder).glob("*.parquet")):
            wrong += by_pyarrow(path.name, pq.read_table(path), expected)
            wrong += by_duckdb(connection, path.name, f"read_parquet('{path}')", expected)
        for path in sorted(Path(folder).glob("*.arrow*")):
            read = ipc.open_stream(path).read_all() if path.suffix == ".arrows" else ipc.open_file(path).read_all()
            wrong += by_pyarrow(path.name, read, expected)
        # Text has no types: DuckDB is told them. Bytes are hexadecimal, and JSON has no NaN.
        bare = expected.drop_columns(["bin"])
        described = connection.execute("SELECT column_name, column_type FROM (DESCRIBE SELECT * FROM bare)").fetchall()
        for name in ["t.csv", "t.csv.gz", "t.csv.zst", "quoted.csv", "t.ndjson", "t.json", "t.ndjson.gz", "t.ndjson.zst"]:
            kind = "csv" if "csv" in name else "json"
            named = [of for of in described if kind == "json" or of[0] in flat]
            # Quoted, the empty string is none in CSV.
            options = ", header = true, allow_quoted_nulls = false" if kind == "csv" else ""
            if kind == "csv":
                order = [of for of in flat]
                typed = dict(named) | {"bin": "VARCHAR"}
                named = [(column, typed[column]) for column in order]
            form = "{" + ", ".join(f"'{column}': '{dtype}'" for column, dtype in named) + "}"
            compared = bare.select([column for column, _ in named if column != "bin"])
            if kind == "json":
                compared = compared.drop_columns(["f32", "f64"])
            wrong += by_duckdb(connection, name, f"read_{kind}('{at(name)}', columns = {form}{options})", compared)
        notes = pq.read_metadata(at("V2.parquet")).metadata
        if notes.get(b"k") != b"v":
            wrong.append(f"pyarrow, V2.parquet: notes are {notes}")
        if (found := pq.read_table(at("folder")).num_rows) != 8:
            wrong.append(f"pyarrow, folder: {found} rows")
        table_of_use, misuse = used(sorted(path for path in Path(folder).iterdir() if path.is_file()), 4)
        wrong += misuse
    print("columns: by how many a library filters/sorts/joins")
    for line in drawn(table_of_use) + wrong:
        print(line)
    print(f"{len(expected.column_names)} columns: {len(wrong)} differences")
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
