"""scripts/compare-tuners: runs the tuners, keeps their answers in CSV files, and makes tables and pictures of those."""

import argparse
import csv
import json
import math
import os
import statistics
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)

from target import Purse, Target, seconds  # noqa: E402
from tuners import TUNERS  # noqa: E402

COLUMNS = ["tuner", "seed", "budget", "test_par10", "spent", "runs", "own_cpu_seconds", "configuration"]
SHIPPED = [os.path.join(HERE, "../../examples/cbc", name) for name in ("replay.yaml", "surrogate.yaml")]
# Those in the picture, in colours for a light and for a dark page. The table has all.
DRAWN = {
    "captime": ("#c0392b", "#ff7b6b"), "captime, its own limit": ("#d9822b", "#f5b26b"), "SMAC3": ("#1b6ca8", "#6cb6f0"), "irace": ("#2e7d4f", "#5fd08f"), "Optuna": ("#7a4fa3", "#c39bef"),
    "random search": ("#666e78", "#a9b1bb"),
}


def arguments():
    parser = argparse.ArgumentParser(
        prog="scripts/compare-tuners",
        description="captime beside other tuners: equal budgets of CPU time, every run through `captime pull`, answers judged on instances kept back.")
    parser.add_argument("scenario", nargs="*", default=[os.path.relpath(path) for path in SHIPPED],
                        help="scenarios with a space or a file of arms [default: the recorded runs that ship, replayed and as a surrogate]")
    parser.add_argument("--budget", default="10s,30s,100s", help="CPU times to spend on runs [default: 10s,30s,100s]")
    parser.add_argument("--seeds", type=int, default=5, help="repetitions of everything [default: 5]")
    parser.add_argument("--tuners", default=";".join(TUNERS), help=f"which ones, separated by semicolons [default: {'; '.join(TUNERS)}]")
    parser.add_argument("--out", default="compare-tuners", help="folder of the results; what is in it is not run again [default: compare-tuners]")
    parser.add_argument("--draw", action="store_true", help="only make the tables and pictures again")
    return parser.parse_args()


def name_of(scenario):
    """Results are called as their scenario is, or as they are already."""
    if os.path.exists(scenario):
        with open(scenario) as file:
            return next(line.split(":")[1].strip() for line in file if line.startswith("name:"))
    return scenario


def read(path):
    if not os.path.exists(path):
        return []
    with open(path) as file:
        return list(csv.DictReader(file))


def compare(scenario, tuners, budgets, seeds, out):
    """Runs what is missing in the CSV file."""
    done = {(row["tuner"], int(row["seed"]), float(row["budget"])) for row in read(out)}
    missing = [(seed, name) for seed in range(1, seeds + 1) for name in tuners if any((name, seed, budget) not in done for budget in budgets)]
    if not missing:
        return
    target = Target(scenario)
    print(f"{scenario}: {len(target.training)} training and {len(target.test)} test instances, cutoff {target.cutoff:g} s", file=sys.stderr)
    for seed, name in missing:
        todo = [budget for budget in budgets if (name, seed, budget) not in done]
        purse = Purse(target, todo)
        TUNERS[name](target, purse, seed)
        is_new = not os.path.exists(out)
        with open(out, "a", newline="") as file:
            writer = csv.writer(file)
            if is_new:
                writer.writerow(COLUMNS)
            for budget, (configuration, spent, runs, own) in zip(todo, purse.answers):
                par10 = target.judge(configuration) if configuration else math.nan
                writer.writerow([name, seed, budget, f"{par10:.6g}", f"{spent:.6g}", runs, f"{own:.3f}", json.dumps(configuration)])
                print(f"{name}, seed {seed}, {budget:g} s: test PAR10 {par10:.4g} after {runs} runs", file=sys.stderr, flush=True)


def summary(rows):
    """By tuner and budget: mean, standard error, and how many seeds gave no answer."""
    curves = {}
    for row in rows:
        curves.setdefault(row["tuner"], {}).setdefault(float(row["budget"]), []).append(row)
    points = {}
    for name in sorted(curves, key=list(TUNERS).index):
        points[name] = {}
        for budget, of in sorted(curves[name].items()):
            values = [float(row["test_par10"]) for row in of if row["test_par10"] != "nan"]
            error = statistics.stdev(values) / math.sqrt(len(values)) if len(values) > 1 else 0.0
            points[name][budget] = (statistics.mean(values) if values else math.nan, error, len(of) - len(values), of)
    return points


def table(rows):
    points = summary(rows)
    budgets = sorted({budget for curve in points.values() for budget in curve})
    largest = max((mean for curve in points.values() for mean, *_ in curve.values() if not math.isnan(mean)), default=0.0)
    unit, scale = ("seconds", 1) if largest >= 10 else ("milliseconds", 1000)
    lines = [f"Test PAR10 in {unit}, mean ± standard error over seeds, by CPU time spent on runs. The last columns are for the largest budget of each tuner.\n",
             "| tuner | seeds | " + " | ".join(f"{budget:g} s" for budget in budgets) + " | runs | its own CPU time | |", "|---|" + "---|" * (len(budgets) + 4)]
    for name, curve in points.items():
        cells = []
        for budget in budgets:
            if budget not in curve:
                cells.append("not run")
                continue
            mean, error, without, _ = curve[budget]
            spread = f" ± {scale * error:.1f}" if error else ""
            cells.append("no answer" if math.isnan(mean) else f"{scale * mean:.1f}{spread}" + (f" ({without} without answer)" if without else ""))
        last = curve[max(curve)][3]
        runs, own = (statistics.mean(float(row[key]) for row in last) for key in ("runs", "own_cpu_seconds"))
        over = max(float(row["spent"]) / float(row["budget"]) for _, _, _, of in curve.values() for row in of)
        note = f"spends up to {over:.2f} of a budget" if over > 1.02 else ""
        lines.append(f"| {name} | {len(last)} | " + " | ".join(cells) + f" | {runs:.0f} | {own:.1f} s | {note} |")
    return "\n".join(lines) + "\n"


def picture(rows):
    """Test PAR10 against the budget, both on log scales, with bands of one standard error. Dark where the page is."""
    points = {name: {budget: (mean, error) for budget, (mean, error, _, _) in curve.items() if not math.isnan(mean)}
              for name, curve in summary(rows).items() if name in DRAWN}
    ends = [value for curve in points.values() for mean, error in curve.values() for value in (mean - error, mean + error) if value > 0]
    budgets = sorted({budget for curve in points.values() for budget in curve})
    left, right, top, bottom = 64, 512, 24, 320
    low, high = math.log(min(ends) / 1.05), math.log(max(ends) * 1.05)

    def x(budget):
        return left + (right - left) * math.log(budget / budgets[0]) / (math.log(budgets[-1] / budgets[0]) or 1)

    def y(value):
        return bottom - (bottom - top) * (math.log(max(value, math.exp(low))) - low) / (high - low)

    steps = [factor * 10.0**power for power in range(-4, 6) for factor in (1, 1.2, 1.5, 2, 2.5, 3, 4, 5, 7) if low <= math.log(factor * 10.0**power) <= high]
    dark = [f".t{number}s{{stroke:{colours[1]}}}.t{number}f{{fill:{colours[1]}}}" for number, colours in enumerate(DRAWN.values())]
    svg = ['<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 680 372" font-family="sans-serif" font-size="13" fill="#222">',
           "<title>Test PAR10 of each tuner's answer against the CPU time spent</title>",
           "<style>@media(prefers-color-scheme:dark){text{fill:#dde3e9}.ground{fill:#12161a}.grid{stroke:#2c343c}.axis{stroke:#a3aeb8}" + "".join(dark) + "}</style>",
           '<rect class="ground" width="680" height="372" fill="white"/>']
    for value in steps:
        svg.append(f'<path class="grid" d="M{left} {y(value):.1f}H{right}" stroke="#e4e4e4"/><text x="{left - 6}" y="{y(value) + 4:.1f}" text-anchor="end">{1000 * value:g}</text>')
    for budget in budgets:
        svg.append(f'<path class="axis" d="M{x(budget):.1f} {bottom}v5" stroke="#444"/><text x="{x(budget):.1f}" y="{bottom + 20}" text-anchor="middle">{budget:g}</text>')
    svg.append(f'<path class="axis" d="M{left} {top}V{bottom}H{right}" fill="none" stroke="#444"/>')
    svg.append(f'<text x="{(left + right) / 2}" y="{bottom + 42}" text-anchor="middle">CPU time spent on runs, in seconds</text>')
    svg.append(f'<text x="16" y="{(top + bottom) / 2}" text-anchor="middle" transform="rotate(-90 16 {(top + bottom) / 2})">test PAR10 of the answer, in ms</text>')
    # Each name stands where its line ends, moved up or down as far as the others need it.
    last = {name: curve[max(curve)][0] for name, curve in points.items() if curve}
    names = sorted(last, key=last.get, reverse=True)
    places = [y(last[name]) + 4 for name in names]
    for place in range(1, len(places)):
        places[place] = max(places[place], places[place - 1] + 18)
    places[-1] = min(places[-1], bottom)
    for place in reversed(range(len(places) - 1)):
        places[place] = min(places[place], places[place + 1] - 18)
    for name, place in zip(names, places):
        number, colour, curve = list(DRAWN).index(name), DRAWN[name][0], points[name]
        upper = [(x(budget), y(mean + error)) for budget, (mean, error) in curve.items()]
        lower = [(x(budget), y(mean - error)) for budget, (mean, error) in curve.items()]
        band = " ".join(f"{a:.1f},{b:.1f}" for a, b in upper + lower[::-1])
        line = " ".join(f"{x(budget):.1f},{y(mean):.1f}" for budget, (mean, _) in curve.items())
        width = 3 if name == "captime" else 1.8
        svg.append(f'<polygon class="t{number}f" points="{band}" fill="{colour}" opacity="0.15"/>')
        svg.append(f'<polyline class="t{number}s" points="{line}" fill="none" stroke="{colour}" stroke-width="{width}"/>')
        svg += [f'<circle class="t{number}f" cx="{x(budget):.1f}" cy="{y(mean):.1f}" r="{width}" fill="{colour}"/>' for budget, (mean, _) in curve.items()]
        bold = ' font-weight="bold"' if name == "captime" else ""
        svg.append(f'<text class="t{number}f" x="{right + 12}" y="{place:.1f}" fill="{colour}"{bold}>{name}</text>')
    return "\n".join([*svg, "</svg>"]) + "\n"


def main():
    given = arguments()
    budgets = sorted(seconds(text) for text in given.budget.split(","))
    tuners = [name.strip() for name in given.tuners.split(";")]
    for name in tuners:
        if name not in TUNERS:
            sys.exit(f"compare-tuners: unknown tuner `{name}`: use {', '.join(f'`{known}`' for known in TUNERS)}")
    os.makedirs(given.out, exist_ok=True)
    for scenario in given.scenario:
        out = os.path.join(given.out, name_of(scenario))
        if not given.draw:
            if not os.path.exists(scenario):
                sys.exit(f"compare-tuners: there is no scenario {scenario}")
            compare(scenario, tuners, budgets, given.seeds, out + ".csv")
        rows = read(out + ".csv")
        if not rows:
            sys.exit(f"compare-tuners: there is nothing in {out}.csv yet")
        with open(out + ".md", "w") as file:
            file.write(table(rows))
        with open(out + ".svg", "w") as file:
            file.write(picture(rows))
        print(f"{scenario}\n\n{table(rows)}")


if __name__ == "__main__":
    main()
