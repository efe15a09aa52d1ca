#!/bin/sh
# Times reading of Parquet files and batches of Arrow on one GPU, ours beside libcudf, polars,
# pyarrow and DuckDB, and prints the table of all (files_beside_peers.py says what is measured, and
# has the options).
#
#   scripts/files-beside-peers.sh BENCH OUT [OPTIONS...]
#   scripts/files-beside-peers.sh pack DIR [--arch 90] [--part MIB] [--without NAMES]
#
# BENCH   the executable of our bench `files`, or a folder that gpu-bundle.sh made
# OUT     a directory for files.jsonl, for what peers printed, for gpu.csv and table.md
#
# `pack` fetches the peers, with tpcgen-cli, for machines with Python 3.12, CUDA 13, CuPy, NumPy and
# PyTorch, but no network: DIR/00/part, DIR/01/part, … of at most MIB (default 48) each. There
#
#   mkdir SITE && cat DIR/*/part | xz -T0 -dc | tar xf - -C SITE && export PYTHONPATH=SITE
#
# --arch leaves in libcudf only the code of GPUs of that compute capability (90: H100, H200), an
# eighth of it. --without leaves out what is there already, of libcudf, nvjitlink (PyTorch brings
# one), polars, pyarrow, duckdb, tpcgen; split by commas.
#
# PYTHON names the interpreter, which for `pack` has pip.
set -eu
[ $# -ge 2 ] || { sed -n '2,22s/^# \{0,1\}//p' "$0" >&2; exit 2; }
here=$(cd "$(dirname "$0")" && pwd)
python=${PYTHON:-python3}

if [ "$1" = pack ]; then
    dir=$2 arch='' part=48 without=''
    shift 2
    while [ $# -ge 2 ]; do
        case $1 in
        --arch) arch=$2 ;;
        --part) part=$2 ;;
        --without) without=$2 ;;
        *) echo "no option $1" >&2; exit 2 ;;
        esac
        shift 2
    done
    mkdir -p "$dir"
    work=$(mktemp -d)
    trap 'rm -rf "$work"' EXIT
    # Wheels without what they depend on: the rest is on the machine. pip matches platforms exactly.
    set -- --no-deps --no-compile --only-binary=:all: --python-version 3.12 --implementation cp --platform any
    for glibc in 39 35 34 28 27 24 17 12; do set -- "$@" --platform "manylinux_2_${glibc}_x86_64"; done
    fetch() {
        name=$1
        shift
        case ,$without, in *",$name,"*) return ;; esac
        "$python" -m pip install -q --disable-pip-version-check --root-user-action ignore --target "$work/site" "$@"
    }
    fetch libcudf "$@" libcudf-cu13==26.10.2 pylibcudf-cu13==26.10.2 rmm-cu13==26.10.0 librmm-cu13==26.10.0 \
        libkvikio-cu13==26.10.0 rapids-logger==0.3.0 nvidia-libnvcomp-cu13==5.3.0.16 nvtx==0.2.17
    fetch nvjitlink "$@" nvidia-nvjitlink==13.5.37
    fetch polars "$@" polars==1.44.2 polars-runtime-32==1.44.2
    fetch pyarrow "$@" pyarrow==26.0.1
    fetch duckdb "$@" duckdb==2.0.0
    fetch tpcgen "$@" tpcgen-cli==4.0.0
    # What only compiling needs, and tests.
    find "$work/site" \( -name include -o -name tests -o -name __pycache__ \) -type d -prune -exec rm -rf {} +
    rm -f "$work/site/nvidia/libnvcomp/bin/nvlzcat"
    library=$work/site/libcudf/lib64/libcudf.so
    if [ -n "$arch" ] && [ -f "$library" ]; then
        "$python" "$here/keep_arch.py" "$library" "$arch"
    fi
    rm -rf "${dir:?}"/[0-9][0-9]
    tar cf - -C "$work/site" . | xz -T0 -4 | split -b "${part}m" -d -a 2 - "$work/part."
    for file in "$work"/part.*; do
        mkdir -p "$dir/${file##*.}"
        mv "$file" "$dir/${file##*.}/part"
    done
    wc -c "$dir"/[0-9][0-9]/part
    exit
fi

bench=$1 out=$2
shift 2
mkdir -p "$out"
if [ -d "$bench" ]; then
    # Without a file to read it only says so.
    "$bench/run.sh" "$out/programs" bench-files >/dev/null
    bench=$out/programs/bench-files
fi
nvidia-smi --query-gpu=name,driver_version,clocks.sm,clocks.mem --format=csv >"$out/gpu.csv" 2>/dev/null || true
"$python" "$here/files_beside_peers.py" --bench "$bench" --out "$out/files.jsonl" "$@" >"$out/table.md" || {
    cat "$out/table.md"
    exit 1
}
cat "$out/table.md"
