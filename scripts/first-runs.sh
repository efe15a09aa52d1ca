#!/bin/sh
# First answers: each query of a folder over the Parquet files of another, a process each.
#
#   scripts/first-runs.sh PROGRAM QUERIES TABLES OUT
#
# PROGRAM    the command `warpframe`
# OUT        a directory: for each run its timeline (trace events, which Perfetto opens) and its
#            output
#
# Runs all queries with an empty cache of kernels each, then with the cache that they fill together, then
# with that cache warm. With PREPARE=1 hand-written kernels are prepared before, as a second folder of
# the cache. Prints for each of the three the median and sum of the process's time and of each part, in
# ms, and the time of a process that opens a CUDA context and ends. WARPFRAME_DEVICE chooses the device.
set -eu
[ $# -eq 4 ] || { sed -n '2,12s/^# \{0,1\}//p' "$0" >&2; exit 2; }
program=$1 queries=$2 tables=$3 out=$4
mkdir -p "$out"
here=$(cd "$(dirname "$0")" && pwd)
prepared=
if [ "${PREPARE:-0}" = 1 ]; then
    prepared=$out/prepared
    WARPFRAME_CACHE_DIR=$prepared "$program" --prepare
fi
if cc -O2 -o "$out/context" "$here/context.c" -ldl && "$out/context"; then
    for number in 1 2 3 4 5 6 7 8 9; do
        start=$(date +%s%N)
        "$out/context"
        echo "$(($(date +%s%N) - start))" >"$out/context.$number.ns"
    done
fi
for cache in empty filling warm; do
    for query in "$queries"/*.sql; do
        name=$(basename "$query" .sql)
        case $cache in
        empty) own="$out/cache.$name" && rm -rf "$own" ;;
        *) own="$out/cache" ;;
        esac
        export WARPFRAME_CACHE_DIR="$own${prepared:+:$prepared}"
        start=$(date +%s%N)
        WARPFRAME_TIMELINE="$out/$cache.$name.json" timeout 120 "$program" --strict --format csv "$tables"/*.parquet \
            -f "$query" >"$out/$cache.$name.out" 2>&1 || echo "$name: failed, see $out/$cache.$name.out" >&2
        echo "$(($(date +%s%N) - start))" >"$out/$cache.$name.ns"
        [ "$cache" != empty ] || rm -rf "$own"
    done
done
python3 "$here/first_runs.py" "$out"
