#!/bin/sh
# Runs DataFusion's own sqllogictest files on the CPU engine and on the device that WARPFRAME_DEVICE
# names (the simulator, where it names none), and compares the answers: tests/it/slt_datafusion.rs.
#
#   scripts/datafusion-slt.sh [FOLDER [PART-OF-A-FILE-NAME]]
#
# The files are those of the crate datafusion-sqllogictest in the version of Cargo.lock's
# datafusion. FOLDER (.slt-files, which git ignores) keeps them, and the report. The test data that
# some of them read is not in the crate: put arrow-testing's and parquet-testing's `data` under
# FOLDER/testing and FOLDER/parquet-testing, where they are at hand; queries over files that are
# missing are left out.
#
# On a machine with a GPU and no Rust, carry FOLDER and .gpu, and run as the last lines here do,
# with `.gpu/run.sh DIR it` in place of cargo.
set -eu

root=$(cd "$(dirname "$0")/.." && pwd)
cd "$root"
mkdir -p "${1:-.slt-files}"
folder=$(cd "${1:-.slt-files}" && pwd)
home=$folder/datafusion/sqllogictest
if [ ! -d "$home/test_files" ]; then
    version=$(sed -n '/^name = "datafusion"$/{n;s/version = "\(.*\)"/\1/p}' Cargo.lock)
    fetch=$(mktemp -d)
    trap 'rm -rf "$fetch"' EXIT
    mkdir "$fetch/src"
    : >"$fetch/src/lib.rs"
    printf '[package]\nname = "fetch"\nversion = "0.0.0"\nedition = "2024"\n[dependencies]\n%s\n[workspace]\n' \
        "datafusion-sqllogictest = \"=$version\"" >"$fetch/Cargo.toml"
    cargo metadata --quiet --format-version 1 --manifest-path "$fetch/Cargo.toml" >"$fetch/metadata.json"
    crate=$(python3 - "$fetch/metadata.json" <<'PYTHON'
import json, os, sys

packages = json.load(open(sys.argv[1]))["packages"]
print(next(os.path.dirname(p["manifest_path"]) for p in packages if p["name"] == "datafusion-sqllogictest"))
PYTHON
    )
    mkdir -p "$home"
    cp -r "$crate/test_files" "$crate/data" "$home/"
fi
it=$(cargo test --quiet --all-features --test it --no-run --message-format=json |
    sed -n 's/.*"executable":"\([^"]*\)".*/\1/p' | tail -n 1)
cd "$home"
WARPFRAME_SLT_FILES=test_files WARPFRAME_SLT_ONLY=${2:-} WARPFRAME_SLT_REPORT=$folder/report.txt \
    "$it" --ignored --nocapture slt_datafusion
