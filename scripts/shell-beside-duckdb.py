#!/usr/bin/env python3
"""Runs the statements of sql/tests/it/shell.txt in DuckDB, too, and compares the rows.

    scripts/shell-beside-duckdb.py [-v] [FILE]
    scripts/shell-beside-duckdb.py [-v] --types [FILE]

Needs the Python package `duckdb`; runs in the repository's root. FILE (sql/tests/it/shell.txt) has statements
behind "> ", the lines that the shell writes of each, or "! " and a part of an error. All run in one session of
DuckDB, in order, so that tables are the same; what we refuse is rolled back there. Names of ours that DuckDB has
otherwise are rewritten (`SPELLED`); dot commands, and statements of the shell's own, are left out.

Of each statement with rows in CSV these are compared as sets of texts: numbers by value, NULL as nothing, floats
to 12 digits. Columns are compared by place, their names only where both have plain ones. Printed are the
statements whose rows differ, those that DuckDB refuses and we do not, and those that we refuse and it does not,
less what the table "Other than in DuckDB" of docs/shell.md lists. Exit code 1 where something is printed.

With --types FILE is sql/tests/it/beside.txt, where `DESCRIBE` stands behind each query, and names and types are
compared, too. A name is DuckDB's, or what was typed (`i*2`, which DuckDB calls `(i * 2)`). A type is DuckDB's, or
another one that a rule of `TYPES` gives to such a statement. `SUMMARIZE` and `SHOW TABLES` are compared by their
columns (`LISTED`). -v says how often each rule was used.
"""

import csv
import datetime
import io
import re
import sys
from pathlib import Path

import duckdb

# How a statement of ours is written in DuckDB.
SPELLED = [
    (r"\bpublic\b", "main"),
    (r"\bSHOW SCHEMAS\b", "SELECT schema_name AS schema FROM duckdb_schemas() WHERE NOT internal OR schema_name = 'main' "
                          "ORDER BY 1"),
    # A word of DuckDB's own.
    (r"\bat\b", '"at"'),
    (r"(\w+|\([^()]*\)) -> ", r"lambda \1 : "),
]
# Statements that only one of both knows by nature: listings, options, and what the shell itself does.
OWN = re.compile(
    r"^\s*(\.|--|SHOW\b|SET\b|RESET\b|DESCRIBE\b|DESC\b|SUMMARIZE\b|EXPLAIN\b|COPY\b|EXPORT\b|IMPORT\b"
    r"|DEALLOCATE ALL|.*information_schema|.*\bnamed_struct\b|.*\bdatafusion\b)", re.I)

# Types of ours for DuckDB's, in statements that have such words, and why.
TYPES = [
    ("BIGINT", "INTEGER", r"\d|\+|-", "an integer in a statement is a BIGINT, and so are sums and differences"),
    ("BIGINT", "HUGEINT", r"(?i)\bsum\b|\bcount_if\b", "a sum of integers is a BIGINT, and an error beyond"),
    (r"DECIMAL\(\d+,0\)", "HUGEINT", r"\d{19}", "an integer beyond 64 bits is a DECIMAL"),
    ("DOUBLE", r"DECIMAL\(\d+,\d+\)", r"\.\d", "a number with a point is a DOUBLE"),
    (r"DECIMAL\(\d+,(\d+)\)", r"DECIMAL\(\d+,(\d+)\)", r"[-+*%]|\bsum\b", "decimals have other numbers of digits"),
    (r"DECIMAL\(\d+,\d+\)", "DOUBLE", r"/|\bavg\b", "quotients and means of decimals are decimals"),
    ("INTEGER", "BIGINT",
     r"\b(strpos|instr|year|month|quarter|dayofweek|extract|date_part)\b",
     "places in texts and parts of dates are INTEGER"),
    ("DATE", "TIMESTAMP", r"\bINTERVAL\b", "a date and whole days are a date"),
]
# Columns of listings whose names are others in DuckDB, and those that are not compared: DuckDB estimates quartiles.
LISTED = {"table": "name", "column": "column_name", "type": "column_type", "unique_values": "approx_unique"}
ESTIMATED = {"q25", "q50", "q75"}


def cases(path):
    """Statement and expected lines of each case."""
    found = []
    for line in Path(path).read_text().splitlines():
        if line.startswith("> "):
            found.append((line[2:], []))
        elif found:
            found[-1][1].append(line)
    return found


def known():
    """Statements that differ on purpose, with the reason, from the table of docs/shell.md."""
    text = Path("docs/shell.md").read_text()
    part = text.split("## Other than in DuckDB", 1)
    reasons = {}
    for line in part[1].splitlines() if len(part) > 1 else []:
        columns = re.split(r"(?<!\\)\|", line)
        if len(columns) > 3 and columns[1].strip().startswith("`"):
            for statement in re.findall(r"`([^`]+)`", columns[1]):
                reasons[statement.replace("\\|", "|")] = columns[3].strip()
    return reasons


def plain(value):
    """A value as both write it."""
    if value is None or value == "":
        return ""
    text = value if isinstance(value, str) else written(value)
    try:
        number = float(text)
        return f"{number:.12g}"
    except ValueError:
        is_time = re.match(r"^(\d{4}-\d\d-\d\d[T ])?\d\d:\d\d:\d\d", text)
        return re.sub(r"(\.\d*?)0+$", r"\1", re.sub(r"[TZ ]+", " ", text).strip()).rstrip(".") if is_time else text


def written(value):
    """A value of Python's as the shell writes it, also within lists, structs and maps."""
    if value is None:
        return "NULL"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(written(one) for one in value)}]"
    if isinstance(value, dict):
        return f"{{{', '.join(f'{written(key)}: {written(one)}' for key, one in value.items())}}}"
    if isinstance(value, datetime.datetime):
        return value.isoformat()
    return str(value)


def same_types(own, other, statement, used):
    """Whether a type of ours is DuckDB's, or one that rules give to a statement."""
    split = re.compile(r'DECIMAL\(\d+,\d+\)|TIMESTAMP WITH TIME ZONE|"[^"]*"|\w+|[^\w\s]')
    parts, others = split.findall(own), split.findall(other)
    for part, wanted in zip(parts, others):
        if part == wanted:
            continue
        for rule in TYPES:
            here, there = re.fullmatch(rule[0], part), re.fullmatch(rule[1], wanted)
            # Of decimals the scale.
            if here and there and here.groups() == there.groups()[:here.re.groups] and re.search(rule[2], statement):
                used[rule[3]] = used.get(rule[3], 0) + 1
                break
        else:
            return False
    return len(parts) == len(others)


def same_names(own, other, typed, used):
    """Whether names of ours are DuckDB's, or texts of expressions that were typed."""
    for name, wanted in zip(own, other):
        if name != wanted:
            if re.fullmatch(r"\w+", name) or name not in typed:
                return False
            reason = "a column is called by what was typed"
            used[reason] = used.get(reason, 0) + 1
    return len(own) == len(other)


def listing(statement, expected, others, rows, typed, used):
    """What differs in the rows of DESCRIBE, SUMMARIZE or SHOW TABLES."""
    made = re.search(rf"(?m)^CREATE .*\b{statement.split()[-1]}\b.*$", typed) if statement.count(" ") == 1 else None
    rows = [dict(zip(others, (plain(value) for value in row))) for row in rows]
    names, own = rows_of(expected)
    names = [LISTED.get(name, name) for name in names]
    if names[0] != "name" and not statement.startswith("DESCRIBE") and names != others:
        return f"columns: ours {names}, DuckDB {others}"
    own = [dict(zip(names, row)) for row in own]
    if names[:2] == ["column_name", "column_type"]:
        pair = [[row["column_name"] for row in one] for one in (own, rows)]
        if not same_names(*pair, typed, used):
            return f"names: ours {pair[0]}, DuckDB {pair[1]}"
        pair = [[row.pop("column_type") for row in one] for one in (own, rows)]
        if not all(same_types(*types, made[0] if made else statement, used) for types in zip(*pair)):
            return f"types: ours {pair[0]}, DuckDB {pair[1]}"
    if statement.startswith("DESCRIBE"):
        return None
    shared = [name for name in names if name in others and name not in ESTIMATED | {"column_type"}]
    pair = [[[row[name] for name in shared] for row in one] for one in (own, rows)]
    return None if pair[0] == pair[1] else f"\n    ours   {pair[0]}\n    DuckDB {pair[1]}"


def rows_of(lines):
    """Names and rows of lines of CSV."""
    read = list(csv.reader(io.StringIO("\n".join(lines))))
    return (read[0], [[plain(v) for v in row] for row in read[1:]]) if read else ([], [])


def main():
    words = [word for word in sys.argv[1:] if word not in ("-v", "--types")]
    verbose, types = "-v" in sys.argv[1:], "--types" in sys.argv[1:]
    path = words[0] if words else f"sql/tests/it/{'beside' if types else 'shell'}.txt"
    connection = duckdb.connect()
    connection.execute("CREATE VIEW jets AS FROM 'data/jets.csv'")
    reasons, style = known(), {}
    counts = dict(equal=0, refused=0, own=0, known=0)
    found, typed, used = [], "", {}
    for statement, expected in cases(path):
        typed += statement + "\n"
        if setting := re.match(r"\.(mode|headers|nullvalue)\s+(.*)", statement):
            style[setting[1]] = setting[2]
        is_csv = (style.get("mode", "csv"), style.get("headers", "on"), style.get("nullvalue", "''")) == ("csv", "on", "''")
        is_listing = types and re.match(r"(DESCRIBE|SUMMARIZE|SHOW TABLES)\b", statement)
        if OWN.match(statement) and not is_listing:
            counts["own"] += 1
            continue
        spelled = statement
        for pattern, replacement in SPELLED:
            spelled = re.sub(pattern, replacement, spelled)
        ours = expected[0][2:] if expected[:1] and expected[0].startswith("! ") else None
        try:
            if ours is not None:
                connection.execute("BEGIN")
            result = connection.execute(spelled)
            names = [column[0] for column in result.description or []]
            theirs, error = result.fetchall(), None
        except duckdb.Error as failure:
            names, theirs, error = [], [], str(failure).splitlines()[0]
        if ours is not None:
            connection.execute("ROLLBACK")
        if ours is not None and error is not None:
            counts["refused"] += 1
            continue
        difference = None
        if error is not None:
            difference = f"DuckDB refuses it: {error}"
        elif ours is not None:
            difference = f"we refuse it: {ours}; DuckDB: {theirs[:3]}"
        elif is_listing:
            difference = listing(statement, expected, names, theirs, typed, used)
        elif is_csv and expected:
            own_names, own = rows_of(expected)
            rows = [[plain(value) for value in row] for row in theirs]
            ordered = re.search(r"\bORDER BY\b", statement, re.I)
            same = own == rows if ordered else sorted(own) == sorted(rows)
            if not same:
                difference = f"\n    ours   {own_names} {own[:6]}\n    DuckDB {names} {rows[:6]}"
            elif types and not same_names(own_names, names, typed, used):
                difference = f"names: ours {own_names}, DuckDB {names}"
            elif any(re.fullmatch(r"\w+", name) and re.fullmatch(r"\w+", other) and name != other
                     for name, other in zip(own_names, names)):
                difference = f"names: ours {own_names}, DuckDB {names}"
        if difference is None:
            counts["equal"] += 1
        elif reason := reasons.get(statement.removeprefix("DESCRIBE ")):
            counts["known"] += 1
            if verbose:
                print(f"> {statement}\n  known: {reason}")
        else:
            found.append((statement, difference))
    for statement, difference in found:
        print(f"> {statement}\n  {difference}")
    if verbose:
        for reason, count in used.items():
            print(f"{count} times: {reason}")
    print(", ".join(f"{count} {what}" for what, count in counts.items()), f", {len(found)} to look at", sep="")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
