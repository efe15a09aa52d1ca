#!/bin/sh
# Random queries on GPUs for some time, in as many processes: NVRTC compiles under a lock, so that
# threads of one process wait for each other. Each process keeps to one core: it would start a
# compiler a core otherwise. What each chunk of queries found is written down when the chunk ends,
# and counts even if the rest is cut off.
#
#   scripts/random-queries.sh PROGRAM OUT PROCESSES QUERIES SEED SECONDS [TEST]
#
# PROGRAM    the integration tests' executable (`it` of scripts/gpu-bundle.sh, unpacked)
# OUT        a directory: tally.txt has a line a chunk, failed.txt what disagreed; the kernel cache
#            lies there, too, unless WARPFRAME_CACHE_DIR says otherwise
# QUERIES    of a chunk; process p takes those from SEED + 1000000 p on
# SECONDS    after which no chunk begins; one takes as long as its queries do
# TEST       what asks the queries: random_queries_agree; random_queries_with_little_memory, which
#            heeds WARPFRAME_RANDOM_LIMITS; or one of tests/it/oracles: sqlite_answers_alike,
#            conditions_keep_their_rows, joins_keep_their_pairs, each_rule_keeps_the_rows
set -eu
[ $# -ge 6 ] || { sed -n '2,18s/^# \{0,1\}//p' "$0" >&2; exit 2; }
program=$1 out=$2 processes=$3 queries=$4 seed=$5 seconds=$6 test=${7:-random_queries_agree}
mkdir -p "$out"
export WARPFRAME_DEVICE="${WARPFRAME_DEVICE:-cuda}" WARPFRAME_REQUIRE_GPU=1
export WARPFRAME_CACHE_DIR="${WARPFRAME_CACHE_DIR:-$out/cache}"
gpus=$(nvidia-smi -L 2>/dev/null | wc -l)
cores=$(nproc)
begin=$(date +%s)
: >"$out/tally.txt"
: >"$out/failed.txt"

process() {
    first=$((seed + $1 * 1000000))
    log=$out/process-$1.log
    [ "$gpus" -gt 1 ] && export CUDA_VISIBLE_DEVICES=$(($1 % gpus))
    while [ $(($(date +%s) - begin)) -lt "$seconds" ]; do
        WARPFRAME_RANDOM_SEED=$first WARPFRAME_RANDOM_QUERIES=$queries WARPFRAME_RANDOM_THREADS=1 \
            taskset -c $(($1 % cores)) "$program" "$test" --nocapture >"$log" 2>&1 || cat "$log" >>"$out/failed.txt"
        # The test's name stands before it where nothing was printed between.
        found=$(sed -n 's/^.*\.\.\. \([0-9]* queries, \)/\1/; / queries, /p' "$log")
        echo "seed $first, ${found:-cut off}, $(($(date +%s) - begin)) s" >>"$out/tally.txt"
        # What cannot even begin would do so again and again.
        [ -n "$found" ] || break
        first=$((first + queries))
    done
    rm -f "$log"
}

number=0
while [ "$number" -lt "$processes" ]; do
    process "$number" &
    number=$((number + 1))
done
wait
awk '/ queries, / { total += $3 } END { print total + 0, "queries" }' "$out/tally.txt"
grep -h 'queries that failed' "$out/failed.txt" || echo "all agree"
