#!/bin/sh
# Builds what runs on a machine that has a GPU and no Rust, into one archive:
#
#   .gpu/bundle.tar.xz   warpframe, it (integration tests), unit (the engine's unit tests), bench-NAME
#   .gpu/run.sh          unpacks it and runs one of them:  .gpu/run.sh DIR it --test-threads 4
#
# The machine needs glibc as new as this one's, an NVIDIA driver, and NVRTC.
#
#   scripts/gpu-bundle.sh [cargo build options]
set -eu

root=$(cd "$(dirname "$0")/.." && pwd)
cd "$root"
out=$root/.gpu
stage=$out/stage
messages=$out/messages.json
rm -rf "$out"
mkdir -p "$stage"

cargo build --profile gpu --workspace --tests --benches --bins --message-format=json "$@" >"$messages"

# One line an executable: its name in the bundle, a tab, its path.
python3 - "$messages" >"$out/executables" <<'PYTHON'
import json, sys

found = {}
for line in open(sys.argv[1]):
    message = json.loads(line)
    path = message.get("executable")
    if message.get("reason") != "compiler-artifact" or not path:
        continue
    kind, name, test = message["target"]["kind"], message["target"]["name"], message["profile"]["test"]
    if kind == ["bin"] and not test and name == "warpframe":
        found["warpframe"] = path
    elif kind == ["test"]:
        found[name] = path
    elif kind == ["lib"] and test and name == "warpframe":
        found["unit"] = path
    elif kind == ["bench"]:
        found["bench-" + name] = path
for name, path in sorted(found.items()):
    print(name, path, sep="\t")
PYTHON

while IFS="$(printf '\t')" read -r name path; do
    # A link where it can be: the copies are some 100 MB each.
    ln "$path" "$stage/$name" 2>/dev/null || cp "$path" "$stage/$name"
done <"$out/executables"
[ -n "$(ls -A "$stage")" ] || { echo "cargo built no executables" >&2; exit 1; }

tar -C "$stage" -cf - . | xz -T0 -3 >"$out/bundle.tar.xz"

cat >"$out/run.sh" <<'RUN'
#!/bin/sh
# .gpu/run.sh DIR [PROGRAM ARGUMENTS...]: unpacks the bundle into DIR, unless this bundle is there already, and runs one
# of its programs in the present directory.
set -eu
[ $# -ge 1 ] || { sed -n '2,3s/^# \{0,1\}//p' "$0" >&2; exit 2; }
here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$1"
target=$(cd "$1" && pwd)
shift
sum=$(sha256sum <"$here/bundle.tar.xz")
if [ "$(cat "$target/.bundle" 2>/dev/null || true)" != "$sum" ]; then
    xz -dc -T0 "$here/bundle.tar.xz" | tar -C "$target" -xf -
    printf '%s\n' "$sum" >"$target/.bundle"
fi
[ $# -gt 0 ] || exec ls "$target"
program=$1
shift
exec "$target/$program" "$@"
RUN
chmod +x "$out/run.sh"

ls -lL "$stage" | awk 'NR > 1 { printf "%-24s %6.1f MB\n", $NF, $5 / 1e6 }'
printf '%-24s %6.1f MB\n' bundle.tar.xz "$(wc -c <"$out/bundle.tar.xz" | awk '{ print $1 / 1e6 }')"
rm -rf "$stage" "$messages" "$out/executables"
