#!/bin/sh
# Times the peers and our primitives one after another on the same GPU, then prints the table of
# both.
#
#   scripts/bench-side-by-side.sh PEERS BENCH OUT [ROWS [OPTIONS...]]
#
# PEERS   a directory with the peers' programs: micro.py (libcudf, CuPy) and cub.cu
# BENCH   the executable of our bench, or a folder that gpu-bundle.sh made
# OUT     a directory for what each program printed, and for table.md
# ROWS    rows of the tables, default 100000000; OPTIONS go to our bench
#
# A peer that cannot run here (no CuPy, no nvcc) leaves its column empty. PYTHON names the
# interpreter of micro.py.
set -eu
[ $# -ge 3 ] || { sed -n '2,12s/^# \{0,1\}//p' "$0" >&2; exit 2; }
here=$(cd "$(dirname "$0")" && pwd)
peers=$1 bench=$2 out=$3 rows=${4:-100000000}
shift 3
[ $# -eq 0 ] || shift
mkdir -p "$out"
nvidia-smi --query-gpu=name,driver_version,clocks.sm,clocks.mem --format=csv >"$out/gpu.csv" 2>/dev/null || true

echo "libcudf and CuPy" >&2
"${PYTHON:-python3}" "$peers/micro.py" --rows "$rows" >"$out/micro.jsonl" 2>"$out/micro.err" ||
    echo "micro.py failed: $(tail -n 1 "$out/micro.err")" >&2

echo "CUB" >&2
nvcc=$(command -v nvcc || echo "${CUDA_HOME:-/usr/local/cuda}/bin/nvcc")
: >"$out/cub.jsonl"
if [ -x "$nvcc" ]; then
    capability=$(nvidia-smi --query-gpu=compute_cap --format=csv,noheader | head -n 1 | tr -d .)
    if "$nvcc" -O3 -std=c++17 -arch="sm_$capability" -o "$out/cub" "$peers/cub.cu" 2>"$out/cub.err"; then
        "$out/cub" "$rows" >"$out/cub.jsonl" 2>>"$out/cub.err" || echo "cub failed: $(tail -n 1 "$out/cub.err")" >&2
    else
        echo "cub.cu does not compile, see $out/cub.err" >&2
    fi
else
    echo "no nvcc: CUB is left out" >&2
fi

echo "ours" >&2
status=0
if [ -d "$bench" ]; then
    set -- "$bench/run.sh" "$out/programs" bench-primitives --rows "$rows" "$@"
else
    set -- "$bench" --rows "$rows" "$@"
fi
WARPFRAME_DEVICE=${WARPFRAME_DEVICE:-cuda} "$@" >"$out/primitives.jsonl" 2>"$out/primitives.kernels.txt" || status=$?
grep '"error"' "$out/primitives.jsonl" >&2 || true

python3 "$here/bench-peers.py" --ours "$out/primitives.jsonl" --peers "$out/micro.jsonl" "$out/cub.jsonl" --rows "$rows" |
    tee "$out/table.md"
exit "$status"
