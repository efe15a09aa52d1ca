#!/bin/sh
# Compiles recorded kernel sources for GPUs with the NVRTC of the Python wheel. Needs no GPU and no
# CUDA toolkit.
#
#   scripts/compile-kernels.sh DIRECTORY [sm_XX[/SHARE] ...]
#
# DIRECTORY holds what WARPFRAME_RECORD_KERNELS=DIRECTORY made a test run write. With
# WARPFRAME_NVRTC set, that library is used and nothing is fetched.
set -eu

[ $# -ge 1 ] || { sed -n '2,7s/^# \{0,1\}//p' "$0" >&2; exit 2; }
directory=$(cd "$1" && pwd)
shift
root=$(cd "$(dirname "$0")/.." && pwd)
# The version of the machines that measure: another minor version allots registers differently.
version=13.0.88

if [ -z "${WARPFRAME_NVRTC:-}" ]; then
    venv=${CARGO_TARGET_DIR:-$root/target}/nvrtc-$version
    if ! ls "$venv"/lib/python3*/site-packages/nvidia/*/lib/libnvrtc.so.13 >/dev/null 2>&1; then
        python3 -m venv "$venv"
        "$venv/bin/pip" install --quiet --disable-pip-version-check "nvidia-cuda-nvrtc==$version"
    fi
    WARPFRAME_NVRTC=$(ls "$venv"/lib/python3*/site-packages/nvidia/*/lib/libnvrtc.so.13 | head -n 1)
    export WARPFRAME_NVRTC
fi

cd "$root"
# Built with the features of the test command: other features would build every dependency once
# more.
messages=$(cargo build --quiet --workspace --all-features --examples --message-format=json)
program=$(printf '%s\n' "$messages" | python3 -c '
import json, sys
for line in sys.stdin:
    message = json.loads(line)
    if message.get("executable") and message["target"]["name"] == "compile_kernels":
        print(message["executable"])
' | tail -n 1)
exec "$program" "$directory" "$@"
