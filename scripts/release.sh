#!/bin/sh
# Makes the release archive of this machine's platform: the command, its manual page, the licence, README,
# and the kernels that every query may need, compiled for the usual GPUs.
#
#   scripts/release.sh [OUT]        makes OUT/warpframe-VERSION-PLATFORM.tar.xz (default: target/release)
#
# Needs Rust, NVRTC (WARPFRAME_NVRTC names it where the loader does not find it), and no GPU.
set -eu
cd "$(dirname "$0")/.."
target=${CARGO_TARGET_DIR:-target}
out=${1:-$target/release}
cargo build --release -p warpframe-sql
version=$("$target/release/warpframe" --version | cut -d' ' -f2)
name=warpframe-$version-$(rustc -vV | sed -n 's/^host: //p')
rm -rf "$out/$name"
mkdir -p "$out/$name/warpframe-kernels"
cp "$target/release/warpframe" LICENSE README.md CHANGELOG.md "$out/$name/"
"$target/release/warpframe" --man > "$out/$name/warpframe.1"
# With nothing beside the program yet, the first folder is where they are kept.
WARPFRAME_CACHE_DIR="$out/$name/warpframe-kernels" \
    "$target/release/warpframe" --prepare --arch sm_80,sm_86,sm_89,sm_90
rm -f "$out/$name/warpframe-kernels"/*.tmp
tar -C "$out" -cJf "$out/$name.tar.xz" "$name"
ls -l "$out/$name/warpframe" "$out/$name.tar.xz"
