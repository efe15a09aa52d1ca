#!/bin/sh
# Queries on a GPU under compute-sanitizer's four tools: each line of scripts/sanitize-queries.sql
# and each query of data/queries, over data/tpch, each with each tool in a process of its own.
# Prints a line for what did not come out clean, and for each tool how many did.
#
#   scripts/sanitize-queries.sh PROGRAM OUT PROCESSES SECONDS [TOOL...]
#
# PROGRAM    the command (`warpframe` of scripts/gpu-bundle.sh, unpacked)
# OUT        a directory: a log for each query and tool that was not clean
# PROCESSES  at once; spread over all GPUs
# SECONDS    after which a query is ended
# TOOL       all four otherwise
#
# Kernels are compiled before, by a run without tools, which is strict: no query leaves the device.
# Nothing of memory is rounded or kept (WARPFRAME_EXACT_MEMORY), and what is only done with many
# rows is done with 2000. The exit code is 1 where anything was not clean.
set -eu
[ $# -ge 4 ] || { sed -n '2,15s/^# \{0,1\}//p' "$0" >&2; exit 2; }
program=$1 out=$2 processes=$3 seconds=$4
shift 4
[ $# -gt 0 ] || set -- memcheck racecheck initcheck synccheck
here=$(cd "$(dirname "$0")/.." && pwd)
mkdir -p "$out/queries"
export WARPFRAME_EXACT_MEMORY=1 WARPFRAME_CACHE_DIR="${WARPFRAME_CACHE_DIR:-$out/cache}"
export WARPFRAME_PARTITION_ROWS="${WARPFRAME_PARTITION_ROWS:-2000}"
gpus=$(nvidia-smi -L | wc -l)
grep -v '^--' "$here/scripts/sanitize-queries.sql" | awk -v out="$out/queries" '{ file = sprintf("%s/line%02d.sql", out, NR); print > file; close(file) }'
cp "$here"/data/queries/q*.sql "$out/queries/"

cat >"$out/one" <<'ONE'
program=$1 out=$2 data=$3 seconds=$4 gpu=$5 tool=$6 query=$7
name=$(basename "$query" .sql) log=$out/$tool-$(basename "$query" .sql).log
export CUDA_VISIBLE_DEVICES="$gpu"
if [ "$tool" = none ]; then set --; else set -- compute-sanitizer --tool "$tool" --error-exitcode 9; fi
timeout "$seconds" "$@" "$program" --device cuda --strict --format ndjson -f "$query" "$data"/*.parquet >"$log" 2>&1
status=$?
found=$(sed -n 's/^========= \(RACECHECK \|ERROR \)SUMMARY: //p' "$log")
# A tool that has nothing to say did not look.
[ "$tool" = none ] || [ $status -ne 0 ] || [ -n "$found" ] || status=8
echo "$status $tool $name: $found"
[ $status -ne 0 ] || rm -f "$log"
ONE
every() {
    for query in "$out"/queries/*.sql; do
        for tool in "$@"; do echo "$tool $query"; done
    done | awk -v gpus="$gpus" '{ print NR % gpus, $0 }' |
        xargs -P "$processes" -L 1 sh "$out/one" "$program" "$out" "$here/data/tpch" "$seconds"
}
every none >"$out/without"
if grep -v '^0 ' "$out/without"; then exit 1; fi
every "$@" >"$out/results"
grep -v '^0 ' "$out/results" || true
for tool in "$@"; do
    echo "$tool: $(grep -c "^0 $tool " "$out/results") of $(grep -c " $tool " "$out/results") clean"
done
! grep -qv '^0 ' "$out/results"
