#!/usr/bin/env python3
"""Read the marks of "ocslab --json measure" or "run", and say when each stage was over.

    ocslab --json --emulated measure --from dp --to pp -n 10 | python3 marks.py
    python3 marks.py marks.ndjson --plot marks.svg

A mark is the interval in which a thing must have happened. So each time is one, too, and
what is printed is from the earliest to the latest that it can have been, in ms since the
command. --plot draws the share that is over by a time: .svg needs nothing, other endings
need matplotlib. Only the standard library is needed for the rest, and Python 3.8.

Exit code 1 when there are no marks, 2 when a line is no JSON.
"""

import argparse
import json
import math
import sys

# The stages in the order in which they are expected; others come behind them.
ORDER = ["traffic-lost", "carrier-down", "dark", "ack", "light", "firmware", "carrier-up", "traffic"]
COLORS = ["#4477aa", "#ee6677", "#228833", "#ccbb44", "#66ccee", "#aa3377", "#bbbbbb", "#000000"]


def read(lines):
    """Return {stage: [(earliest, latest)]} in ns since the command of the same reconfiguration."""
    commands, marks, null = {}, [], set()
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            record = json.loads(line)
        except ValueError as error:
            print(f"marks.py: line {number} is no JSON: {error}", file=sys.stderr)
            sys.exit(2)
        if record.get("kind") == "reconfiguration" and record.get("null"):
            null.add(record["reconfiguration"])  # nothing was moved
        if record.get("kind") != "mark":
            continue
        at = record["reconfiguration"]
        if record["stage"] == "command":
            low, high = commands.get(at, (math.inf, math.inf))  # several switches: the first to be written
            commands[at] = (min(low, record["earliest_ns"]), min(high, record["latest_ns"]))
        else:
            marks.append((at, record["stage"], record["earliest_ns"], record["latest_ns"]))
    stages = {}
    for at, stage, earliest, latest in marks:
        if at in commands and at not in null:
            low, high = commands[at]
            stages.setdefault(stage, []).append((earliest - high, latest - low))
    return {s: stages[s] for s in sorted(stages, key=lambda s: (ORDER.index(s) if s in ORDER else len(ORDER), s))}


def quantile(values, q):
    """Return that quantile of numbers, with linear interpolation."""
    values = sorted(values)
    at = (len(values) - 1) * q
    below = math.floor(at)
    above = min(below + 1, len(values) - 1)
    return values[below] + (at - below) * (values[above] - values[below])


def table(stages):
    """Return one line for each stage: how many, and the median and 99th percentile."""
    rows = [("stage", "marks", "median/ms", "p99/ms")]
    for stage, spans in stages.items():
        row = [stage, str(len(spans))]
        for q in (0.5, 0.99):
            low, high = (quantile([s[i] for s in spans], q) / 1e6 for i in (0, 1))
            row.append(f"{low:.3f}..{high:.3f}")
        rows.append(tuple(row))
    widths = [max(len(row[i]) for row in rows) for i in range(4)]
    return ["  ".join([row[0].ljust(widths[0])] + [c.rjust(w) for c, w in zip(row[1:], widths[1:])]) for row in rows]


def svg(stages, width=720, height=360):
    """Return the share of each stage that is over by a time, as a band from latest to earliest."""
    left, right, top, bottom = 50, 130, 15, 40
    most = max(high for spans in stages.values() for _, high in spans) / 1e6
    step = 10 ** math.floor(math.log10(most))
    step = next(step * m for m in (0.1, 0.2, 0.5, 1, 2) if most / (step * m) <= 10)

    def x(ms):
        return left + max(ms, 0) / most * (width - left - right)

    def y(share):
        return height - bottom - share * (height - top - bottom)

    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" font-family="sans-serif" font-size="12">']
    out.append(f'<rect width="{width}" height="{height}" fill="white"/>')
    for i in range(math.floor(most / step) + 1):
        out.append(f'<path d="M{x(i * step):.1f} {y(0)}V{y(1)}" stroke="#ddd"/>')
        out.append(f'<text x="{x(i * step):.1f}" y="{y(0) + 16}" text-anchor="middle">{i * step:g}</text>')
    for share in (0, 0.5, 1):
        out.append(f'<path d="M{left} {y(share):.1f}H{width - right}" stroke="#ddd"/>')
        out.append(f'<text x="{left - 6}" y="{y(share) + 4:.1f}" text-anchor="end">{100 * share:.0f} %</text>')
    out.append(f'<text x="{(left + width - right) / 2:.0f}" y="{height - 8}" text-anchor="middle">ms since the command</text>')
    for n, (stage, spans) in enumerate(stages.items()):
        color = COLORS[n % len(COLORS)]
        sides = []
        for side in (0, 1):  # a stair: at each value one more is over
            at = sorted(s[side] / 1e6 for s in spans)
            points = [(x(at[0]), y(0))]
            for i, ms in enumerate(at):
                points += [(x(ms), y(i / len(at))), (x(ms), y((i + 1) / len(at)))]
            sides.append(points)
        outline = " ".join(f"{a:.1f},{b:.1f}" for a, b in sides[0] + sides[1][::-1])
        out.append(f'<polygon points="{outline}" fill="{color}" fill-opacity="0.35" stroke="{color}" stroke-width="1"/>')
        out.append(f'<rect x="{width - right + 12}" y="{top + 18 * n}" width="12" height="12" fill="{color}"/>')
        out.append(f'<text x="{width - right + 30}" y="{top + 18 * n + 10}">{stage}</text>')
    return "\n".join(out + ["</svg>", ""])


def plot(stages, path):
    """Write the picture: .svg by hand, anything else with matplotlib."""
    if path.endswith(".svg"):
        with open(path, "w", encoding="utf-8") as file:
            file.write(svg(stages))
        return
    try:
        import matplotlib
    except ImportError:
        sys.exit(f"marks.py: {path} needs matplotlib, which is not here; an .svg needs nothing")
    matplotlib.use("Agg")  # no display is needed
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(8, 4), layout="constrained")
    for stage, spans in stages.items():
        low, high = (sorted(s[i] / 1e6 for s in spans) for i in (0, 1))
        share = [(i + 1) / len(spans) for i in range(len(spans))]
        axes.fill_betweenx(share, low, high, step="pre", alpha=0.5, label=stage)
    axes.set(xlabel="ms since the command", ylabel="share that is over", ylim=(0, 1.02))
    axes.legend(fontsize=8)
    figure.savefig(path, dpi=120)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", nargs="?", type=argparse.FileType(encoding="utf-8"), default=sys.stdin, help="lines of JSON (default: standard input)")
    parser.add_argument("--plot", metavar="FILE", help="picture to write")
    args = parser.parse_args()
    stages = read(args.file)
    if not stages:
        sys.exit("marks.py: no marks: want the output of ocslab --json measure or run")
    print("\n".join(table(stages)))
    if args.plot:
        plot(stages, args.plot)


if __name__ == "__main__":
    main()
