#!/bin/sh
# Builds what runs on a machine that has a GPU and no Rust, one archive a program:
#
#   .gpu/NAME.xz   warpframe, it (integration tests), unit and unit-device (unit tests of the engine and of the device), bench-NAME
#   .gpu/run.sh    unpacks one into a directory and runs it:  .gpu/run.sh DIR it --test-threads 4
#
# The machine needs glibc as new as this one's, an NVIDIA driver, and NVRTC. Carry data/ along:
# tests and benchmarks read it from the present directory.
#
#   scripts/gpu-bundle.sh [cargo build options]
set -eu

root=$(cd "$(dirname "$0")/.." && pwd)
cd "$root"
out=$root/.gpu
messages=$out/messages.json
rm -rf "$out"
mkdir -p "$out"

cargo build --release --workspace --tests --benches --bins --message-format=json "$@" >"$messages"

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
    elif kind == ["test"] and "warpframe-sql" not in message["package_id"] and "/sql#" not in message["package_id"]:
        found[name] = path
    elif kind == ["lib"] and test and name == "warpframe":
        found["unit"] = path
    elif kind == ["lib"] and test and name == "warpframe_device":
        found["unit-device"] = path
    elif kind == ["bench"]:
        found["bench-" + name] = path
for name, path in sorted(found.items()):
    print(name, path, sep="\t")
PYTHON

[ -s "$out/executables" ] || { echo "cargo built no executables" >&2; exit 1; }
while IFS="$(printf '\t')" read -r name path; do
    xz -T0 -3 -c "$path" >"$out/$name.xz"
    printf '%-24s %6.1f MB\n' "$name" "$(wc -c <"$out/$name.xz" | awk '{ print $1 / 1e6 }')"
done <"$out/executables"

cat >"$out/run.sh" <<'RUN'
#!/bin/sh
# .gpu/run.sh DIR PROGRAM [ARGUMENTS...]: unpacks a program into DIR, unless it is there already,
# and runs it in the present directory.
set -eu
[ $# -ge 2 ] || { sed -n '2,3s/^# \{0,1\}//p' "$0" >&2; exit 2; }
here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$1"
target=$(cd "$1" && pwd)
program=$2
shift 2
sum=$(sha256sum <"$here/$program.xz")
if [ "$(cat "$target/.$program" 2>/dev/null || true)" != "$sum" ]; then
    xz -dc -T0 "$here/$program.xz" >"$target/$program"
    chmod +x "$target/$program"
    printf '%s\n' "$sum" >"$target/.$program"
fi
exec "$target/$program" "$@"
RUN
chmod +x "$out/run.sh"
rm -f "$messages" "$out/executables"
