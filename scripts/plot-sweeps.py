#!/usr/bin/env python3
"""Draws the sweeps of `bench-primitives --sweep NAME`: device time over the property that varies, one SVG file a sweep.

  scripts/plot-sweeps.py OUT FILE...      OUT/cardinality-100M.svg, OUT/skew-100M.svg, OUT/scale.svg, …
"""
import json
import math
import os
import re
import sys
from collections import defaultdict
from html import escape

# By sweep: the property's name in the names of benchmarks, its axis, and the base of a logarithmic
# axis (0: percent).
SWEEPS = {
    "cardinality": ("groups", "groups", 10),
    "duplicates": ("copies", "build rows of each key", 10),
    "skew": ("hot", "rows that have one key, %", 0),
    "width": ("bits", "bits of the key", 2),
    "nulls": ("nulls", "nulls, %", 0),
    "payload": ("payload", "columns carried along", 2),
    "scale": (None, "rows", 10),
}
COLOURS = ["#0b6fa4", "#d1495b", "#2e8b57", "#e08e0b", "#7b4fa3", "#5c5c5c", "#00a0a0", "#a0522d"]
LEFT, TOP, WIDTH, HEIGHT = 70, 46, 560, 360
LEGEND = 330


class Axis:
    """From values to pixels: logarithmic to a base, or of percentages where the base is 0."""

    def __init__(self, values, start, end, base):
        self.start, self.end, self.base = start, end, base
        low, high = min(values), max(values)
        if base:
            # Whole powers of ten, and of two as they come.
            low, high = math.floor(math.log(low, base) + 1e-9), math.ceil(math.log(high, base) - 1e-9)
        else:
            # Percent.
            low, high = 0, 100
        self.low, self.high = low, high if high > low else low + 1

    def at(self, value):
        position = math.log(value, self.base) if self.base else value
        return self.start + (position - self.low) / (self.high - self.low) * (self.end - self.start)

    def ticks(self):
        """Values with labels, and values between them."""
        if not self.base:
            return list(range(0, 101, 20)), []
        majors = [self.base**power for power in range(self.low, self.high + 1)]
        minors = [m * i for m in majors[:-1] for i in range(2, 10)] if self.base == 10 else []
        return majors, minors


def short(value):
    for unit, size in (("B", 1e9), ("M", 1e6), ("k", 1e3)):
        if value >= size:
            return f"{value / size:g}{unit}"
    return f"{value:.3g}"


def read(paths):
    """The last time of each point: {(sweep, rows or None): {series: {x: ms}}}."""
    plots = defaultdict(lambda: defaultdict(dict))
    for path in paths:
        with open(path, encoding="utf-8") as file:
            for text in file:
                line = json.loads(text) if text.startswith("{") else {}
                if line.get("sweep") not in SWEEPS or "device_ms" not in line:
                    continue
                sweep, name, rows = line["sweep"], line["bench"], line["rows"]
                parameter = SWEEPS[sweep][0]
                if parameter is None:
                    plots[sweep, None][name][rows] = line["device_ms"]
                    continue
                found = re.search(rf" ?\b{parameter}=(\d+)%?", name)
                if found:
                    # A join makes almost as many rows, whatever the number of copies.
                    rows = None if sweep == "duplicates" else rows
                    series = name.replace(found.group(0), "").strip()
                    plots[sweep, rows][series][int(found.group(1))] = line["device_ms"]
    return plots


def text(x, y, content, anchor="start", size=12, extra=""):
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-size="{size}"{extra}>{escape(content)}</text>'


def line(x1, y1, x2, y2, colour, width=1, dash=""):
    dash = f' stroke-dasharray="{dash}"' if dash else ""
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="{colour}" stroke-width="{width}"{dash}/>'


def grid(x_axis, y_axis):
    right, bottom = LEFT + WIDTH, TOP + HEIGHT
    out = []
    majors, minors = x_axis.ticks()
    out += [line(x_axis.at(v), TOP, x_axis.at(v), bottom, "#f0f0f0") for v in minors]
    out += [line(x_axis.at(v), TOP, x_axis.at(v), bottom, "#d8d8d8") for v in majors]
    out += [text(x_axis.at(v), bottom + 18, short(v), "middle") for v in majors]
    majors, minors = y_axis.ticks()
    out += [line(LEFT, y_axis.at(v), right, y_axis.at(v), "#f0f0f0") for v in minors]
    out += [line(LEFT, y_axis.at(v), right, y_axis.at(v), "#d8d8d8") for v in majors]
    out += [text(LEFT - 8, y_axis.at(v) + 4, short(v), "end") for v in majors]
    if len(majors) <= 2:
        out += [text(LEFT - 8, y_axis.at(v) + 4, short(v), "end", 10) for v in minors if f"{v:.0e}"[0] in "25"]
    out.append(f'<rect x="{LEFT}" y="{TOP}" width="{WIDTH}" height="{HEIGHT}" fill="none" stroke="#808080"/>')
    return out


def draw(title, x_label, base, plot):
    points = [(x, ms) for series in plot.values() for x, ms in series.items()]
    x_axis = Axis([x for x, _ in points], LEFT, LEFT + WIDTH, base)
    y_axis = Axis([ms for _, ms in points], TOP + HEIGHT, TOP, 10)
    out = grid(x_axis, y_axis)
    stems = {}
    # The slowest at the right end comes first, as its line does.
    order = sorted(plot.items(), key=lambda item: -item[1][max(item[1])])
    for at, (name, series) in enumerate(order):
        # Lines that differ in the keys' domain alone share a colour.
        stem = re.sub(r" (dense|scattered)\b", "", name)
        colour = COLOURS[stems.setdefault(stem, len(stems)) % len(COLOURS)]
        dash = "6 4" if "scattered" in name else ""
        places = [(x_axis.at(x), y_axis.at(ms)) for x, ms in sorted(series.items())]
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
        dashes = f' stroke-dasharray="{dash}"' if dash else ""
        out.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"{dashes}/>')
        out += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{colour}"/>' for x, y in places]
        y = TOP + 12 + 20 * at
        out.append(line(LEFT + WIDTH + 14, y, LEFT + WIDTH + 44, y, colour, 2, dash))
        out.append(text(LEFT + WIDTH + 50, y + 4, re.sub(r"(?<==)\d+", lambda n: short(int(n.group())), name)))
    width, bottom = LEFT + WIDTH + LEGEND, max(TOP + HEIGHT, TOP + 20 * len(plot)) + 48
    middle = TOP + HEIGHT / 2
    out.append(text(LEFT, TOP - 18, title, size=15, extra=' font-weight="bold"'))
    out.append(text(LEFT + WIDTH / 2, TOP + HEIGHT + 38, x_label, "middle"))
    out.append(text(20, middle, "device time, ms", "middle", extra=f' transform="rotate(-90 20 {middle})"'))
    head = (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {bottom}" width="{width}" height="{bottom}" '
            'font-family="sans-serif" fill="#202020"><rect width="100%" height="100%" fill="#ffffff"/>')
    return "\n".join([head, *out, "</svg>\n"])


def main():
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    folder = sys.argv[1]
    os.makedirs(folder, exist_ok=True)
    for (sweep, rows), plot in sorted(read(sys.argv[2:]).items(), key=str):
        _, x_label, base = SWEEPS[sweep]
        size = f"-{short(rows)}" if rows else ""
        title = f"{sweep}, {short(rows)} rows" if rows else sweep
        path = os.path.join(folder, f"{sweep}{size}.svg")
        with open(path, "w", encoding="utf-8") as file:
            file.write(draw(title, x_label, base, plot))
        print(f"{path} {os.path.getsize(path) / 1024:.1f} KiB")


if __name__ == "__main__":
    main()
