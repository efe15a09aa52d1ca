#!/usr/bin/env python3
"""Whether the verbs of frames give what Polars gives.

usage: check-frames.py DIR

A test writes two tables and what each verb makes of them into DIR; this asks Polars the same:

  WARPFRAME_POLARS_DIR=DIR cargo test --workspace --all-features --test it results_are_written
  python3 scripts/check-frames.py DIR

Prints the verbs whose rows differ, and those that are not compared with the reason. Needs Python's
`polars`. Columns are compared by their values, whatever the width of their numbers; rows in the
order that Polars promises, else sorted.
"""
import datetime
import math
import pathlib
import sys

import polars as pl
from polars import col

ALL = ["k", "x", "f", "d"]
WEEK = dict(every="1w", closed="left", label="left")

# What Polars is asked, by the name of the verb; `sorted` where it does not keep the order of rows.
VERBS = {
    "select": lambda t, u: t.select(col("x") + 1, "k"),
    "select aggregates": lambda t, u: t.select(col("x").sum(), col("f").mean(), col("k").n_unique()),
    "with_columns": lambda t, u: t.with_columns((col("x") * 2).alias("y"), col("f").abs()),
    "with_columns over": lambda t, u: t.with_columns(col("x").max().over("k").alias("most")),
    "filter": lambda t, u: t.filter(col("x") > 3),
    "remove": lambda t, u: t.remove(col("k") == "a"),
    "sort": lambda t, u: t.sort("x", "k", "f", "d", descending=[True, False, False, False],
                                nulls_last=[False, True, True, True]),
    "top_k": lambda t, u: t.sort(ALL, nulls_last=True).head(10),
    "limit": lambda t, u: t.slice(2, 10),
    "head": lambda t, u: t.head(5),
    "tail": lambda t, u: t.tail(5),
    "slice": lambda t, u: t.slice(-8, 5),
    "gather_every": lambda t, u: t.gather_every(3),
    "reverse": lambda t, u: t.reverse(),
    "with_row_index": lambda t, u: t.with_row_index("row", 1),
    "distinct": lambda t, u: t.select("k").unique(),
    "unique": lambda t, u: t.unique("k", keep="last", maintain_order=True),
    "is_duplicated": lambda t, u: t.with_columns(t.select("k", "x").is_duplicated().alias("is_duplicated")),
    "is_unique": lambda t, u: t.with_columns(t.select("x").is_unique().alias("is_unique")),
    "drop": lambda t, u: t.drop("f"),
    "rename": lambda t, u: t.rename({"x": "y"}),
    "cast": lambda t, u: t.cast({"x": pl.Float64}),
    "reorder": lambda t, u: t.select("f", "d", "k", "x"),
    "fill_null": lambda t, u: t.with_columns(col("x").fill_null(0)),
    "fill_null_with": lambda t, u: t.with_columns(col("x", "k").forward_fill()),
    "fill_nan": lambda t, u: t.with_columns(col("f").fill_nan(0.0)),
    "interpolate": lambda t, u: t.with_columns(col("x").interpolate()),
    "drop_nulls": lambda t, u: t.drop_nulls(),
    "drop_nans": lambda t, u: t.drop_nans("f"),
    "null_count": lambda t, u: t.null_count(),
    "join": lambda t, u: t.join(u.unique("k", keep="first", maintain_order=True), on="k", how="left"),
    "join_on": lambda t, u: t.join(u, on="x", how="semi"),
    "join_where": lambda t, u: t.head(20).join_where(u.head(20), col("x") < col("x_right")),
    "join_asof": lambda t, u: nearest(t.with_row_index("row"), u.unique("x", keep="first", maintain_order=True)),
    "update": lambda t, u: t.update(u.unique("x", keep="first", maintain_order=True), on="x"),
    "cross_join": lambda t, u: t.head(7).select("x").join(u.head(5).select("f"), how="cross"),
    "concat vertical": lambda t, u: pl.concat([t, u]),
    "concat diagonal": lambda t, u: pl.concat([t, u.rename({"x": "y"})], how="diagonal"),
    "concat horizontal": lambda t, u: pl.concat([t, u.rename(lambda name: f"{name}2")], how="horizontal"),
    "union": lambda t, u: pl.concat([t, u]),
    "intersect": lambda t, u: t.select("k", "x").unique().join(u.select("k", "x").unique(), on=["k", "x"],
                                                               how="semi", nulls_equal=True),
    "except": lambda t, u: t.select("k", "x").unique().join(u.select("k", "x").unique(), on=["k", "x"],
                                                            how="anti", nulls_equal=True),
    "is_in": lambda t, u: t.with_columns(col("x").is_in(u["x"].implode(), nulls_equal=True).alias("is_in")),
    "sum": lambda t, u: t.select(col("x", "f").sum()),
    "median": lambda t, u: t.select(col("x", "f").median()),
    "n_unique": lambda t, u: t.select(pl.all().n_unique()),
    "quantile": lambda t, u: t.select(col("x", "f").quantile(0.25, "linear")),
    "value_counts": lambda t, u: t.group_by("k").len("count"),
    "corr": lambda t, u: t.filter(~col("f").is_nan()).select(
        pl.lit(pl.Series("column", ["x", "f"])),
        pl.concat_list(pl.corr("x", "x"), pl.corr("f", "x")).explode().alias("x"),
        pl.concat_list(pl.corr("x", "f"), pl.corr("f", "f")).explode().alias("f")),
    "cut": lambda t, u: t.with_columns(col("x").cut([2.0, 5.0])),
    "group_by agg": lambda t, u: t.group_by("k").agg(col("x").sum(), col("f").nan_max(), pl.len()),
    "group_by maintain_order": lambda t, u: t.group_by("k", maintain_order=True).agg(col("x").first(), pl.len()),
    "group_by head": lambda t, u: t.filter(pl.int_range(pl.len()).over("k") < 2),
    "group_by_dynamic": lambda t, u: t.sort("d").group_by_dynamic("d", **WEEK).agg(col("x").sum()),
    "explode": lambda t, u: t.group_by("k", maintain_order=True).agg(pl.all()).explode("x", "f", "d"),
    "unnest": lambda t, u: t.select(pl.struct(col("x").alias("a"), col("k").alias("b")).alias("s")).unnest("s"),
    "unpivot": lambda t, u: t.unpivot(["x", "f"], index=["k"]),
    "to_dummies": lambda t, u: t.to_dummies("k"),
    "pivot": lambda t, u: t.pivot("k", index="d", values="x", aggregate_function="sum"),
    "shift": lambda t, u: t.shift(2),
    "diff": lambda t, u: t.with_columns(col("x").diff()),
    "cum_sum": lambda t, u: t.with_columns(col("x").cum_sum()),
    "rank": lambda t, u: t.with_columns(col("x").rank("average", descending=True)),
    "arg_sort and take": lambda t, u: t.sort("f", "x", nulls_last=True, maintain_order=True),
}
SORTED = {"top_k", "distinct", "join", "join_on", "join_where", "cross_join", "intersect", "except", "value_counts",
          "group_by agg", "pivot"}
# What is meant to differ.
OTHERWISE = {
    "sample": "other rows for a seed", "shuffle": "another order for a seed", "describe": "texts for other types",
    "qcut": "classes are named otherwise", "hist": "classes are named otherwise",
}
# Columns in which a sum of no values is null, which is 0 in Polars.
NULL_SUMS = {"group_by agg": ["x"], "group_by_dynamic": ["x"], "pivot": None}
LEFT_OUT = {"rank": ["f"]}  # the rank of NaN


def nearest(t, u):
    """The row before by `x`, where Polars wants sorted keys without nulls."""
    found = t.drop_nulls("x").sort("x").join_asof(u.drop_nulls("x").sort("x"), on="x")
    return pl.concat([found, t.filter(col("x").is_null())], how="diagonal").sort("row").drop("row")


def plain(value):
    if isinstance(value, float):
        return "NaN" if math.isnan(value) else round(value + 0.0, 9)
    if isinstance(value, (bool, int)):
        return round(float(value), 9)
    if isinstance(value, (datetime.date, datetime.datetime)):
        return str(value)[:10]
    return value


def rows(frame, columns, zero):
    """Values by row; `zero` are columns in which null is 0."""
    found = []
    for row in frame.select(columns).iter_rows():
        cells = [plain(value) for value in row]
        found.append([0.0 if value is None and name in zero else value for name, value in zip(columns, cells)])
    return found


def key(row):
    return [(value is None, str(type(value)), value if value is not None else 0) for value in row]


def main(folder):
    t, u = pl.read_parquet(folder / "t.parquet"), pl.read_parquet(folder / "u.parquet")
    wrong = []
    files = sorted(folder.glob("*.result.parquet"))
    for file in files:
        verb = file.name.removesuffix(".result.parquet")
        if verb in OTHERWISE:
            print(f"not compared: {verb}: {OTHERWISE[verb]}")
            continue
        if verb not in VERBS:
            wrong.append(f"{verb}: this script does not know it")
            continue
        ours, theirs = pl.read_parquet(file), VERBS[verb](t, u)
        columns = [name for name in theirs.columns if name not in LEFT_OUT.get(verb, [])]
        if sorted(ours.columns) != sorted(theirs.columns):
            wrong.append(f"{verb}: columns {ours.columns} instead of {theirs.columns}")
            continue
        zero = NULL_SUMS.get(verb, [])
        zero = set(columns if zero is None else zero)
        found, expected = rows(ours, columns, zero), rows(theirs, columns, zero)
        if verb in SORTED:
            found, expected = sorted(found, key=key), sorted(expected, key=key)
        if found != expected:
            apart = [pair for pair in zip(found, expected) if pair[0] != pair[1]][:3]
            wrong.append(f"{verb}: {len(found)} rows, Polars {len(expected)}; ours and theirs: {apart}")
    print(f"{len(files) - len(wrong)} of {len(files)} verbs agree or differ as they are meant to")
    print("\n".join(wrong), end="\n" if wrong else "")
    return 1 if wrong or not files else 0


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    sys.exit(main(pathlib.Path(sys.argv[1])))
