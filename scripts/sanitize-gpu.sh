#!/bin/sh
# Tests on GPUs under one of compute-sanitizer's tools, each in a process of its own, many at once:
# a tool slows a test down by up to a thousand times, and most of that is not the GPU's. Prints a
# line a test, those that took longest last.
#
#   scripts/sanitize-gpu.sh PROGRAM OUT TOOL PROCESSES SECONDS [FILTER...]
#
# PROGRAM    `unit`, `unit-device` or `it` of scripts/gpu-bundle.sh, unpacked
# OUT        a directory: a log for each test
# TOOL       memcheck, racecheck, initcheck or synccheck
# PROCESSES  at once; spread over all GPUs
# SECONDS    after which a test is ended
# FILTER     names begin with one of these; all tests otherwise
#
# Kernels are compiled before, by a run without the tool. Nothing of memory is rounded or kept
# (WARPFRAME_EXACT_MEMORY), and the operators' tests of large tables take WARPFRAME_TEST_ROWS rows
# (100,000). "no GPU" is a test that launches nothing there. The exit code is 1 where a tool found
# something, or a test failed or did not end.
set -eu
[ $# -ge 5 ] || { sed -n '2,18s/^# \{0,1\}//p' "$0" >&2; exit 2; }
program=$1 out=$2 tool=$3 processes=$4 seconds=$5
shift 5
mkdir -p "$out"
export WARPFRAME_DEVICE="${WARPFRAME_DEVICE:-cuda}" WARPFRAME_REQUIRE_GPU=1 WARPFRAME_EXACT_MEMORY=1
export WARPFRAME_CACHE_DIR="${WARPFRAME_CACHE_DIR:-$out/cache}" WARPFRAME_TEST_ROWS="${WARPFRAME_TEST_ROWS:-100000}"
export WARPFRAME_PARTITION_ROWS="${WARPFRAME_PARTITION_ROWS:-2000}"
gpus=$(nvidia-smi -L | wc -l)
filters=$(printf '%s\n' "$@")
"$program" --list 2>/dev/null | sed -n 's/: test$//p' | awk -v filters="$filters" '
    BEGIN { count = split(filters, wanted, "\n") }
    filters == "" { print; next }
    { for (i = 1; i <= count; i++) if (index($0, wanted[i]) == 1) { print; next } }' >"$out/names"
# shellcheck disable=SC2046 # a word a test
"$program" --exact $(cat "$out/names") >"$out/without.log" 2>&1 || { tail -n 30 "$out/without.log"; exit 1; }

cat >"$out/one" <<'ONE'
program=$1 out=$2 tool=$3 seconds=$4 gpu=$5 name=$6
log=$out/$(echo "$name" | tr -c 'a-z0-9_\n' _).log
start=$(date +%s)
export CUDA_VISIBLE_DEVICES="$gpu"
timeout "$seconds" compute-sanitizer --tool "$tool" --error-exitcode 9 "$program" --exact "$name" --test-threads 1 >"$log" 2>&1
status=$?
found=$(sed -n 's/^========= \(RACECHECK \|ERROR \)SUMMARY: //p' "$log")
if [ $status -eq 255 ] && grep -q 'test result: ok' "$log" && grep -q 'before first instrumented API call' "$log"; then
    status=0 found="no GPU"
fi
echo "$status $(($(date +%s) - start)) s $name: $found"
ONE
awk -v gpus="$gpus" '{ print NR % gpus, $0 }' "$out/names" |
    xargs -P "$processes" -L 1 sh "$out/one" "$program" "$out" "$tool" "$seconds" >"$out/results"
sort -n -k 2 "$out/results"
! grep -qv '^0 ' "$out/results"
