#!/bin/sh
# The integration tests on GPUs, in several processes: NVRTC compiles under a lock, so that tests of
# one process wait for each other. Says what failed, and of a process that died what the kernel and
# a core dump know.
#
#   scripts/gpu-tests.sh PROGRAM OUT PROCESSES THREADS SECONDS [FILTER...]
#
# PROGRAM    `it` of scripts/gpu-bundle.sh, unpacked
# OUT        a directory: a log for each process in which a test failed, or which died
# THREADS    of each process; process p takes every PROCESSES-th test, on GPU p modulo their number
# SECONDS    after which a process is ended
# FILTER     names begin with one of these; all tests but the random queries and oracles otherwise
set -u
[ $# -ge 5 ] || { sed -n '2,12s/^# \{0,1\}//p' "$0" >&2; exit 2; }
program=$1 out=$2 processes=$3 threads=$4 seconds=$5
shift 5
mkdir -p "$out"
export WARPFRAME_DEVICE="${WARPFRAME_DEVICE:-cuda}" WARPFRAME_REQUIRE_GPU=1
export WARPFRAME_CACHE_DIR="${WARPFRAME_CACHE_DIR:-$out/cache}" WARPFRAME_PARTITION_ROWS="${WARPFRAME_PARTITION_ROWS:-2000}"
export WARPFRAME_SHARED_BYTES="${WARPFRAME_SHARED_BYTES:-0}"
gpus=$(nvidia-smi -L 2>/dev/null | wc -l)
[ "$gpus" -gt 0 ] || gpus=1
ulimit -c unlimited
filters=$(printf '%s\n' "$@")
"$program" --list 2>/dev/null | sed -n 's/: test$//p' | awk -v filters="$filters" '
    BEGIN { count = split(filters, wanted, "\n") }
    filters == "" { if (index($0, "random::random") != 1 && index($0, "oracles::") != 1) print; next }
    { for (i = 1; i <= count; i++) if (index($0, wanted[i]) == 1) { print; next } }' >"$out/names"

number=0
while [ "$number" -lt "$processes" ]; do
    (
        awk -v n="$processes" -v i="$number" 'NR % n == i' "$out/names" >"$out/$number.names"
        [ -s "$out/$number.names" ] || exit 0
        [ "$gpus" -gt 1 ] && export CUDA_VISIBLE_DEVICES=$((number % gpus))
        # shellcheck disable=SC2046 # a word a test
        timeout "$seconds" "$program" --exact --test-threads="$threads" $(cat "$out/$number.names") >"$out/$number.log" 2>&1
        echo "exit status $?" >>"$out/$number.log"
    ) &
    number=$((number + 1))
done
wait

cat "$out"/*.log | awk '/^test .*\.\.\. ok$/ { ok++ } /^test .*\.\.\. FAILED$/ { bad++ }
    END { print ok + 0, "tests passed,", bad + 0, "failed" }'
echo "of $(wc -l <"$out/names")"
died=0
for log in "$out"/*.log; do
    if tail -n 1 "$log" | grep -qx 'exit status 0'; then
        rm -f "$log" "${log%.log}.names"
        continue
    fi
    died=1
    echo "--- $log"
    grep -A 12 'panicked at' "$log" | head -n 40
    tail -n 3 "$log"
done
[ "$died" -eq 0 ] && exit 0
# A fault's library and address stand in the kernel's log.
dmesg 2>/dev/null | grep -i 'segfault\|traps\|killed' | tail -n 5
for core in core core.*; do
    [ -f "$core" ] && cuda-gdb -batch -ex bt -ex 'thread apply all bt 8' "$program" "$core" 2>/dev/null | grep -v '^\[New' | head -n 80
done
exit 1
