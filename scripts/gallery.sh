#!/bin/sh
# The lessons of examples/gallery at the sizes of a GPU, a process each.
#
#   scripts/gallery.sh PROGRAM OUT [LESSON…]
#
# PROGRAM    the example `gallery`: cargo build --release --example gallery, then
#            target/release/examples/gallery
# OUT        a directory: for each lesson what it printed, and times.tsv of all
#
# Prints a table: lesson, way, size, time of the fastest of five runs behind those that compile.
# Fails where a lesson does, behind the others. WARPFRAME_DEVICE chooses the device, else a GPU has to be there.
# SCALE divides all sizes: SCALE=100 is for a look on the simulator.
set -eu
[ $# -ge 2 ] || { sed -n '2,14s/^# \{0,1\}//p' "$0" >&2; exit 2; }
program=$1 out=$2
shift 2
device=${WARPFRAME_DEVICE:-cuda} scale=${SCALE:-1}
mkdir -p "$out"
: >"$out/times.tsv"
failed=

# Lessons, and their rows.
while read -r lesson rows; do
    if [ $# -gt 0 ]; then
        case " $* " in *" $lesson "*) ;; *) continue ;; esac
    fi
    rows=$((rows / scale))
    [ "$rows" -ge 1000 ] || rows=1000
    if "$program" "$lesson" --rows "$rows" --device "$device" >"$out/$lesson.txt" 2>"$out/$lesson.err"; then
        # A line of a time: the lesson, the way, two spaces or more, the size, the time, "ms".
        sed -n "s/^  $lesson  *\(.*[^ ]\)   *\([^ ].*[^ ]\)   *\([0-9.]*\) ms\$/$lesson\t\1\t\2\t\3/p" \
            "$out/$lesson.txt" | tee -a "$out/times.tsv" |
            while IFS="$(printf '\t')" read -r name way size time; do
                printf '%-13s %-25s %28s %12s ms\n' "$name" "$way" "$size" "$time"
            done
    else
        failed="$failed $lesson"
        echo "$lesson: failed: $(tail -n 1 "$out/$lesson.err")" >&2
    fi
done <<'LESSONS'
increment 100000000
quadratic 100000000
blocks 100000000
l2norm 100000000
reduction 100000000
matrix 16777216
mandelbrot 10000000
histogram 100000000
pi 1000000000
sort 50000000
zmass 5000000
one-function 1000000
memory 20000000
gather 50000000
LESSONS
[ -z "$failed" ] || { echo "failed:$failed" >&2; exit 1; }
