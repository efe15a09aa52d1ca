#!/bin/sh
# Runs the integration tests on the simulator with kernels compiled under AddressSanitizer: device
# memory is host memory, so an access out of an allocation's bounds is reported with the kernel's
# line.
#
#   scripts/sanitize-sim.sh [test filter…]
set -eu
cd "$(dirname "$0")/.."
library=$(${CXX:-g++} -print-file-name=libasan.so)
[ -e "$library" ] || { echo "$library: the C++ compiler has no AddressSanitizer" >&2; exit 1; }

messages=$(cargo test --workspace --all-features --test it --no-run --message-format=json)
binary=$(printf '%s\n' "$messages" | python3 -c '
import json, sys
for line in sys.stdin:
    message = json.loads(line)
    target = message.get("target", {})
    if message.get("executable") and target.get("name") == "it" and "/sql/" not in target.get("src_path", ""):
        print(message["executable"])
' | tail -n 1)
[ -n "$binary" ] || { echo "cargo built no integration tests" >&2; exit 1; }

# Leaks are not the point here, and fibers have stacks of their own.
WARPFRAME_SIM_ASAN=1 LD_PRELOAD="$library" \
    ASAN_OPTIONS=detect_leaks=0:detect_stack_use_after_return=0:handle_segv=0:abort_on_error=1 \
    "$binary" "$@"
