#!/bin/sh
# A cluster of one machine beside Ballista as it is and beside single processes, over one folder of
# Parquet files: times and answers of each query (bench-devices.py), then the queries once more while
# an executor is killed.
#
#   scripts/bench-cluster.sh PROGRAMS QUERIES TABLES OUT RUNS DEVICE DEVICE [CHOICE...]
#
# PROGRAMS   a folder with warpframe-cluster and stock_ballista (cluster/examples)
# OUT        a folder for logs, rows and times
# DEVICE     of the two executors: cuda:0 cuda:1, or cuda:0 twice; WARPFRAME_MEMORY_LIMIT limits each
# CHOICE     what else runs the queries, as bench-devices.py says: cuda:0 cuda:0,1 duckdb
#
# Ports from 50100 to 50330 must be free. The cluster's first form parts rows between stages on the
# CPU (df://127.0.0.1:50200), its second one on the devices (df://127.0.0.1:50100). PARTITIONS is the
# number of tasks of a stage (4). OUT/NAME.timeline has what executor NAME did when, for
# chrome://tracing and the like. With WARM_UP=--warm-up all queries run once before they are measured.
set -eu
[ $# -ge 7 ] || { sed -n '2,16s/^# \{0,1\}//p' "$0" >&2; exit 2; }
programs=$1 queries=$2 tables=$3 out=$4 runs=$5 first=$6 second=$7
shift 7
here=$(dirname "$0")
mkdir -p "$out"
work=$(mktemp -d /dev/shm/bench-cluster-XXXXXX)
started=
trap 'kill $started 2>/dev/null; wait; rm -rf "$work"' EXIT
trap 'exit 143' TERM INT
PATH=$(cd "$programs" && pwd):$PATH
export STOCK_BALLISTA=stock_ballista

# begin NAME COMMAND...: in the background, until this script ends.
begin() {
    log=$out/$1.log timeline=$out/$1.timeline
    shift
    WARPFRAME_TIMELINE=$timeline "$@" >"$log" 2>&1 &
    started="$started $!"
}

# cluster NAME PORT [OPTION...]: a scheduler and two executors.
cluster() {
    name=$1 port=$2
    shift 2
    mkdir "$work/$name"
    begin "$name-scheduler" warpframe-cluster scheduler --bind-port "$port"
    begin "$name-0" warpframe-cluster executor --device "$first" --scheduler-port "$port" \
        --bind-port $((port + 10)) --work-dir "$work/$name" "$@"
    begin "$name-1" warpframe-cluster executor --device "$second" --scheduler-port "$port" \
        --bind-port $((port + 20)) --work-dir "$work/$name" "$@"
}

cores=$(nproc)
cluster second 50100
last=$!
cluster first 50200 --host-shuffle
begin stock-scheduler stock_ballista scheduler 50300
sleep 1
for number in 1 2; do
    begin "stock-$number" stock_ballista executor 50300 $((50300 + 10 * number)) $((cores / 2)) \
        "$work/stock-$number"
done
sleep 6
by="?partitions=${PARTITIONS:-4}"
set -- "$@" "df://127.0.0.1:50100$by"
# shellcheck disable=SC2086 # an option or none
python3 "$here/bench-devices.py" --runs "$runs" ${WARM_UP:-} "warpframe-cluster shell" "$queries" "$tables" "$out" \
    "$@" "df://127.0.0.1:50200$by" "stock:50300,$cores" >"$out/table.txt" 2>&1 || true

# Executor 1 of the second form ends as nothing can prepare for, some queries in.
(sleep "${KILL_AFTER:-2}"; kill -9 "$last") &
python3 "$here/bench-devices.py" --runs 0 "warpframe-cluster shell" "$queries" "$tables" "$out/killed" \
    "df://127.0.0.1:50100$by" "$1" >"$out/killed.txt" 2>&1 || true
cat "$out/killed.txt" "$out/table.txt"
