#!/usr/bin/env python3
"""Runs the statements of sql/tests/it/shell.txt in DuckDB, too, and compares the rows.

    scripts/shell-beside-duckdb.py [-v] [FILE]

Needs the Python package `duckdb`; runs in the repository's root. FILE (sql/tests/it/shell.txt) has statements
behind "> ", the lines that the shell writes of each, or "! " and a part of an error. All run in one session of
DuckDB, in order, so that tables are the same; what we refuse is rolled back there. Names of ours that DuckDB has
otherwise are rewritten (`SPELLED`); dot commands, and statements of the shell's own, are left out.

Of each statement with rows in CSV these are compared as sets of texts: numbers by value, NULL as nothing, floats
to 12 digits. Columns are compared by place, their names only where both have plain ones. Printed are the
statements whose rows differ, those that DuckDB refuses and we do not, and those that we refuse and it does not,
less what the table "Other than in DuckDB" of docs/shell.md lists. Exit code 1 where something is printed.
"""

import csv
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
    text = str(value)
    if text in ("True", "False"):
        return text.lower()
    try:
        number = float(text)
        return f"{number:.12g}"
    except ValueError:
        return re.sub(r"[TZ ]+", " ", text).strip() if re.match(r"^\d{4}-\d\d-\d\d[T ]", text) else text


def rows_of(lines):
    """Names and rows of lines of CSV."""
    read = list(csv.reader(io.StringIO("\n".join(lines))))
    return (read[0], [[plain(v) for v in row] for row in read[1:]]) if read else ([], [])


def main():
    words = [word for word in sys.argv[1:] if word != "-v"]
    verbose = "-v" in sys.argv[1:]
    path = words[0] if words else "sql/tests/it/shell.txt"
    connection = duckdb.connect()
    connection.execute("CREATE VIEW jets AS FROM 'data/jets.csv'")
    reasons, style = known(), {}
    counts = dict(equal=0, refused=0, own=0, known=0)
    found = []
    for statement, expected in cases(path):
        if setting := re.match(r"\.(mode|headers|nullvalue)\s+(.*)", statement):
            style[setting[1]] = setting[2]
        is_csv = (style.get("mode", "csv"), style.get("headers", "on"), style.get("nullvalue", "''")) == ("csv", "on", "''")
        if OWN.match(statement):
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
        elif is_csv and expected:
            own_names, own = rows_of(expected)
            rows = [[plain(value) for value in row] for row in theirs]
            ordered = re.search(r"\bORDER BY\b", statement, re.I)
            same = own == rows if ordered else sorted(own) == sorted(rows)
            if not same:
                difference = f"\n    ours   {own_names} {own[:6]}\n    DuckDB {names} {rows[:6]}"
            elif any(re.fullmatch(r"\w+", name) and re.fullmatch(r"\w+", other) and name != other
                     for name, other in zip(own_names, names)):
                difference = f"names: ours {own_names}, DuckDB {names}"
        if difference is None:
            counts["equal"] += 1
        elif statement in reasons:
            counts["known"] += 1
            if verbose:
                print(f"> {statement}\n  known: {reasons[statement]}")
        else:
            found.append((statement, difference))
    for statement, difference in found:
        print(f"> {statement}\n  {difference}")
    print(", ".join(f"{count} {what}" for what, count in counts.items()), f", {len(found)} to look at", sep="")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
