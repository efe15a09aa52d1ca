#!/bin/sh
# Reads every Parquet file of a folder on the CPU engine and on the device that WARPFRAME_DEVICE
# names (the simulator, where it names none), column by column, and compares:
# tests/it/decode/folder.rs. Tells which columns the device read, which the host's reader brought
# and why, and what both refuse.
#
#   scripts/parquet-testing.sh FOLDER
#
# The files are not part of this repository; those of https://github.com/apache/parquet-testing have
# what writers of all kinds have made of the format:
#
#   git clone https://github.com/apache/parquet-testing
#   scripts/parquet-testing.sh parquet-testing
set -eu
[ $# -eq 1 ] || { echo "usage: $0 FOLDER" >&2; exit 2; }
folder=$(cd "$1" && pwd)
cd "$(dirname "$0")/.."
WARPFRAME_PARQUET_FILES=$folder cargo test --workspace --all-features --test it -- \
    --ignored --nocapture decode::folder
