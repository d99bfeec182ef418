#!/usr/bin/env python3
"""Plot a run of ocslab: a waterfall of its stages, and how their times are distributed.

RUN is the ID of a run or a part of it, "last", the directory of a run, or a file that
"ocslab runs export RUN --table durations" has written (.csv or .ndjson).

    python3 plot_run.py last --out run.png
    python3 plot_run.py durations.csv --stages light,carrier-up,traffic --out run.svg

Needs pandas 1.5 or later and matplotlib.
"""

import argparse
import io
import math
import os
import re
import subprocess
import sys

import matplotlib

matplotlib.use("Agg")  # no display is needed

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

LOST = ("dark", "traffic-lost", "carrier-down")  # stages that take something away
UNITS = {"": 1.0, "ns": 1e-9, "us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}
LOW, MID, HIGH = "after_earliest_ns", "after_mid_ns", "after_latest_ns"


def read(run, ocslab):
    """Return the durations of a run: one row for each subject, stage and reconfiguration."""
    if os.path.isfile(run):
        if run.endswith((".ndjson", ".jsonl")):
            table = pd.read_json(run, lines=True)
        else:
            table = pd.read_csv(run)
    else:
        command = [ocslab]
        if os.path.isdir(run):  # STATE-DIR/runs/ID
            above, run = os.path.split(os.path.realpath(run))
            command += ["--state-dir", os.path.dirname(above)]
        command += ["runs", "export", run, "--table", "durations", "--format", "csv"]
        try:
            done = subprocess.run(command, stdout=subprocess.PIPE, check=False)
        except OSError as error:
            sys.exit(f"plot_run.py: {ocslab} cannot be run, so name it with --ocslab: {error}")
        if done.returncode != 0:  # it has said why
            sys.exit(done.returncode)
        table = pd.read_csv(io.BytesIO(done.stdout))
    missing = {"run", "condition", "label", "stage", LOW, MID, HIGH} - set(table.columns)
    if missing:
        sys.exit(f"plot_run.py: {run} has no column {', '.join(sorted(missing))}: want the table durations")
    table["label"] = table["label"].fillna("all")
    return table


def colors(names):
    """Return a color for each name: distinct ones for few, a scale for many."""
    if len(names) <= 10:
        return dict(zip(names, plt.get_cmap("tab10").colors))
    return dict(zip(names, plt.get_cmap("viridis")(np.linspace(0, 0.95, len(names)))))


def unit(ns):
    """Return the unit in which so many nanoseconds read well, and its worth in ns."""
    return ("s", 1e9) if ns >= 2e9 else ("ms", 1e6) if ns >= 2e6 else ("µs", 1e3)


def waterfall(axes, table, order):
    """Draw one bar for each stage of each condition, from the median before it to its own.

    The line through its end is from the 5th to the 95th percentile.
    """
    name, ns = unit(table[MID].quantile(0.95))
    shade = colors(order)
    ticks, texts, y = [], [], 0
    for label, condition in table.groupby("label", sort=False):
        axes.text(0, y, f" {label}", transform=axes.get_yaxis_transform(), weight="bold", va="center", size=9)
        y += 1
        quantiles = condition.groupby("stage")[MID].quantile([0.05, 0.5, 0.95]).unstack() / ns
        before = 0.0
        for stage, q in quantiles.sort_values(0.5).iterrows():
            middle = q[0.5]
            axes.barh(y, max(middle, 0) - before, left=before, height=0.7, color=shade[stage])
            axes.plot([q[0.05], q[0.95]], [y, y], color="black", linewidth=1, marker="|", markersize=5)
            axes.annotate(f"{middle:.4g} {name}", (max(q[0.95], 0), y), xytext=(6, 0), textcoords="offset points", va="center", size=8)
            before = max(middle, before)
            ticks.append(y)
            texts.append(stage)
            y += 1
    axes.set_yticks(ticks, texts, size=8)
    axes.set_ylim(y - 0.3, -0.7)
    axes.margins(x=0.12)
    axes.set_xlabel(f"time since the command, {name}: medians, and 5 % to 95 %")


def distribution(axes, table, stage, shade):
    """Draw the share of a stage's durations that are over by a time, for each condition.

    A mark is known to an interval: the truth lies within the shaded band.
    """
    name, ns = unit(table[MID].quantile(0.95))
    for label, condition in table.groupby("label", sort=False):
        low, high = np.sort(condition[LOW]) / ns, np.sort(condition[HIGH]) / ns
        share = np.arange(len(low) + 1) / len(low)
        low, high = np.insert(low, 0, low[0]), np.insert(high, 0, high[0])  # where it is still 0
        axes.fill_betweenx(share, low, high, step="pre", color=shade[label], alpha=0.25, linewidth=0)
        axes.step((low + high) / 2, share, where="post", color=shade[label], linewidth=1.2)
    axes.set_title(stage, size=10)
    axes.set_xlabel(f"{name} since the command", size=8)
    axes.set_ylim(0, 1.02)
    axes.tick_params(labelsize=8)
    axes.locator_params(axis="x", nbins=6)
    axes.grid(alpha=0.3)


def number(text):
    """Return what a parameter says in its base unit, such as "250ms" as 0.25, or NaN."""
    match = re.fullmatch(r"([-+]?[0-9.]+)(ns|us|µs|ms|s|m|h|)", str(text).strip())
    try:
        return float(match[1]) * UNITS[match[2]] if match else math.nan
    except ValueError:
        return math.nan


def swept(table):
    """Return the only parameter that varies, as numbers, if it has at least three values."""
    columns = [c for c in table.columns if c.startswith("param_")]
    if len(columns) != 1:
        return None
    texts = table[columns[0]].astype(str)
    unit = " in s" if texts.str.contains("[a-z]").any() else ""
    values = texts.map(number).rename(columns[0][len("param_"):] + unit)
    return values if values.notna().all() and values.nunique() >= 3 else None


def fit(axes, table, order, values):
    """Draw the median of each stage over a parameter, with a straight line, and print that."""
    scale = colors(order)
    name, ns = unit(table[MID].quantile(0.95))
    for stage, rows in table.groupby("stage"):
        medians = rows.groupby(values)[MID].median() / 1e9
        if len(medians) < 3:
            continue
        slope, offset = np.polyfit(medians.index, medians, 1)
        print(f"{stage}: median in s = {offset:.6g} + {slope:.6g} * {values.name}")
        axes.plot(medians.index, medians * 1e9 / ns, "o", color=scale[stage], markersize=4)
        axes.plot(medians.index, (offset + slope * medians.index) * 1e9 / ns, color=scale[stage], linewidth=1, label=stage)
    axes.set_title("median and straight line", size=10)
    axes.set_xlabel(values.name, size=8)
    axes.set_ylabel(name, size=8)
    axes.tick_params(labelsize=8)
    axes.legend(fontsize=7)
    axes.grid(alpha=0.3)


def plot(table, columns=3):
    """Return a figure of a table of durations."""
    labels = list(table["label"].unique())
    order = list(table.groupby("stage")[MID].median().sort_values().index)
    values = swept(table)
    panels = len(order) + (values is not None)
    rows = math.ceil(panels / columns)
    bars = len(table.groupby(["label", "stage"])) + len(labels)
    key = 0.22 * math.ceil(len(labels) / 3) if len(labels) > 1 else 0.01
    heights = [0.9 + 0.24 * bars, key] + [2.5] * rows
    figure = plt.figure(figsize=(11, sum(heights) + 1), layout="constrained")
    grid = figure.add_gridspec(rows + 2, columns, height_ratios=heights)
    figure.suptitle(f"{table['run'].iloc[0]}: {table['reconfiguration'].nunique()} reconfigurations", size=12)

    waterfall(figure.add_subplot(grid[0, :]), table, order)
    shade = colors(labels)
    legend = figure.add_subplot(grid[1, :])
    legend.axis("off")
    if len(labels) > 1:
        lines = [plt.Line2D([], [], color=shade[label], label=label) for label in labels]
        legend.legend(handles=lines, loc="center", ncols=min(len(labels), 3), fontsize=8, frameon=False)
    panel = (figure.add_subplot(grid[2 + i // columns, i % columns]) for i in range(panels))
    for stage in order:
        distribution(next(panel), table[table["stage"] == stage], stage, shade)
    if values is not None:
        fit(next(panel), table, order, values)
    return figure


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", metavar="RUN")
    parser.add_argument("--out", metavar="FILE", default="run.png", help="picture to write: .png, .svg or .pdf (default run.png)")
    parser.add_argument("--stages", metavar="LIST", help="stages to show, separated by commas (default all that bring something back)")
    parser.add_argument("--ocslab", metavar="PATH", default="ocslab", help="the program (default ocslab)")
    args = parser.parse_args()

    table = read(args.run, args.ocslab)
    if args.stages:
        table = table[table["stage"].isin(args.stages.split(","))]
    else:
        table = table[~table["stage"].isin(LOST)]
    if table.empty:
        sys.exit(f"plot_run.py: {args.run} has no durations of these stages")
    plot(table).savefig(args.out, dpi=120)


if __name__ == "__main__":
    main()
