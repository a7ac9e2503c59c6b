"""Runs the peers of scripts/compare-forests, interleaved, and writes the tables. Standard library only."""

import argparse
import csv
import itertools
import json
import math
import os
import pathlib
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
# trees, mtry, min node size, sample fraction: corners of the paper's 672 configurations.
CONFIGURATIONS = {"A": (100, 20, 9, 0.55), "B": (300, 24, 5, 0.632), "C": (700, 30, 3, 0.8)}
PEERS = [
    "ranger",
    "ranger with oob.error",
    "scikit-learn",
    "dml-core",
    "smartcore",
    "captime portable",
    "captime",
]
# These run on every split. The others may get fewer.
MAIN = ["ranger", "captime portable", "captime"]
THREADED = ["ranger", "scikit-learn", "dml-core", "captime"]
TABLES = ["fit", "threads", "growth", "stop", "instructions", "effects"]


def say(*words):
    print(*words, file=sys.stderr, flush=True)


class Table:
    """A data set: its file, and the numbers for peers without factors."""

    def __init__(self, path, predict, header, rows, folder, name):
        self.path, self.predict = path, predict
        self.rows, self.columns = len(rows), len(header) - 1
        self.coded = folder / f"{name}-coded.csv"
        target = header.index(predict)
        order = [target] + [place for place in range(len(header)) if place != target]
        columns = [coded(header[place], [row[place] for row in rows]) for place in order]
        with open(self.coded, "w", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(header[place] for place in order)
            writer.writerows(zip(*columns))


def coded(name, cells):
    """Numbers stay. Text becomes the index of its level in alphabetical order, as in captime and R."""
    try:
        for cell in cells:
            float(cell)
        return cells
    except ValueError:
        if any(cell in ("", "NA") for cell in cells):
            sys.exit(f"compare-forests: column `{name}` has missing cells, which not all peers support")
        places = {level: place for place, level in enumerate(sorted(set(cells), key=str.encode))}
        return [places[cell] for cell in cells]


def read(path, drop):
    with open(path, newline="", encoding="utf-8-sig") as file:
        header, *rows = list(csv.reader(file))
    kept = [place for place, name in enumerate(header) if name not in drop]
    return [header[place] for place in kept], [[row[place] for place in kept] for row in rows]


def write(path, header, rows):
    with open(path, "w", newline="") as file:
        csv.writer(file).writerows([header, *rows])


def more_rows(header, rows, predict, chance):
    """Ten times the rows: cells of resampled rows, one in ten from another row, and prices two per cent off."""
    target = header.index(predict)
    made = []
    for _ in range(10 * len(rows)):
        row = list(chance.choice(rows))
        for place in range(len(row)):
            if place == target:
                row[place] = f"{float(row[place]) * (1 + 0.02 * chance.uniform(-1, 1)):.0f}"
            elif chance.random() < 0.1:
                row[place] = chance.choice(rows)[place]
        made.append(row)
    return header, made


def more_columns(header, rows, predict):
    """Ten times the predictors, by repeating them."""
    others = [place for place in range(len(header)) if header[place] != predict]
    target = header.index(predict)
    wide = [header[target]] + [f"{header[place]}_{copy}" for copy in range(10) for place in others]
    return wide, [[row[target]] + [row[place] for _ in range(10) for place in others] for row in rows]


class Bench:
    def __init__(self, options, folder):
        self.options, self.folder = options, folder

    def split(self, table, number):
        """Seven tenths for training, the same rows for all peers."""
        path = self.folder / f"test-{table.rows}-{number}.txt"
        if not path.exists():
            chance = random.Random(1000 * number + 7)
            learned = int(0.7 * table.rows)
            tested = sorted(chance.sample(range(1, table.rows + 1), table.rows - learned))
            path.write_text("".join(f"{row}\n" for row in tested))
        return path

    def fit(self, peer, table, configuration, threads, number, extra=(), before=()):
        trees, mtry, node, fraction = map(str, CONFIGURATIONS[configuration])
        test = str(self.split(table, number))
        rest = [test, trees, mtry, node, fraction, str(threads), str(number)]
        if peer.startswith("ranger"):
            oob = "TRUE" if "oob" in peer else "FALSE"
            command = ["Rscript", "--vanilla", HERE / "ranger.R", table.coded, *rest, oob]
        elif peer == "scikit-learn":
            command = [self.options.cache / "venv/bin/python", HERE / "sklearn_fit.py", table.coded, *rest]
        elif peer.startswith("captime"):
            command = [self.options.captime, "forest", table.path, "--predict", table.predict, "--test-rows", test]
            command += ["--trees", trees, "--mtry", mtry, "--min-node-size", node, "--sample-fraction", fraction]
            command += ["--threads", str(threads), "--seed", str(number), "--format", "json", *extra]
            command += ["--drop", self.options.drop] if self.options.drop else []
            command += ["--simd", "portable"] if "portable" in peer else []
        else:
            command = [self.options.cache / "peers/target/release/forest-peers", peer, table.coded, *rest]
        result, peak = run([str(word) for word in (*before, *command)])
        result |= {"peer": peer, "configuration": configuration, "threads": threads, "split": number}
        result |= {"peak_megabytes": peak, "rows_in_table": table.rows, "columns_in_table": table.columns}
        if self.options.json:
            with open(self.options.json, "a") as file:
                file.write(json.dumps(result) + "\n")
        return result

    def interleaved(self, peers, table, configurations, threads, splits):
        """Every peer once per split and configuration, in a rotating order, so that none gets all the quiet moments."""
        results = {}
        for number in range(1, splits + 1):
            say(f"split {number} of {splits}: {table.path}, {'/'.join(configurations)}, threads {threads}")
            for configuration in configurations:
                for turn in range(len(peers)):
                    peer = peers[(turn + number) % len(peers)]
                    if peer not in MAIN and number > self.options.peer_splits:
                        continue
                    for count in threads:
                        key = (peer, configuration, count)
                        results.setdefault(key, []).append(self.fit(peer, table, configuration, count, number))
        return results


def run(command):
    """The JSON that a command prints, and its peak memory in MB."""
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        answer = process.stdout.read()
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        sys.exit(f"compare-forests: exit code {process.returncode} from: {' '.join(command)}")
    return json.loads(answer.splitlines()[-1]), usage.ru_maxrss / 1024


def median(results, field):
    return statistics.median(result[field] for result in results)


def mean(results, field):
    values = [result.get(field) for result in results]
    return None if None in values else statistics.fmean(values)


def same_splits(ours, theirs):
    """Their results on the splits that captime ran on too."""
    numbers = {result["split"] for result in ours}
    return [result for result in theirs if result["split"] in numbers]


def ratio(results, base, field):
    """Median of the ratios within each split, which a busy hour disturbs less than the ratio of medians."""
    return statistics.median(ours[field] / theirs[field] for ours, theirs in zip(results, base))


def show(title, header, rows):
    print(f"\n{title}\n\n| {' | '.join(header)} |\n|{'---|' * len(header)}")
    for row in rows:
        print(f"| {' | '.join(row)} |")
    sys.stdout.flush()


def fit_table(bench, table, peers, splits):
    chosen = list(bench.options.configurations)
    results = bench.interleaved(peers, table, chosen, [1], splits)

    def cells(peer, cell):
        ours = [results[peer, name, 1] for name in chosen]
        theirs = [results["ranger", name, 1] for name in chosen]
        return [cell(a, same_splits(a, b)) for a, b in zip(ours, theirs)]

    def times(ours, theirs):
        return f"{median(ours, 'fit_cpu_seconds'):.3f} ({ratio(ours, theirs, 'fit_cpu_seconds'):.2f})"

    show(
        f"Fit, one thread: CPU seconds, median over the splits (ratio to ranger), and peak memory of the process in {chosen[-1]}.",
        ["", *chosen, "peak MB"],
        [[peer, *cells(peer, times), f"{median(results[peer, chosen[-1], 1], 'peak_megabytes'):.0f}"] for peer in peers],
    )

    def errors(ours, theirs):
        return f"{mean(ours, 'rmse'):.0f} ({100 * (mean(ours, 'rmse') / mean(theirs, 'rmse') - 1):+.2f} %)"

    def leaves(ours, theirs):
        if mean(ours, "leaves") is None:
            return "unknown"
        return f"{mean(ours, 'leaves'):.1f} ({100 * (mean(ours, 'leaves') / mean(theirs, 'leaves') - 1):+.1f} %)"

    def predicting(ours, theirs):
        ratios = sorted(a["predict_seconds"] / b["predict_seconds"] for a, b in zip(ours, theirs))
        return f"{1000 * median(ours, 'predict_seconds'):.1f} ({statistics.median(ratios):.2f}, {ratios[0]:.2f} to {ratios[-1]:.2f})"

    some = [peer for peer in peers if peer not in ("ranger with oob.error", "captime portable")]
    header = ["", *chosen]
    show(f"RMSE on unseen rows, mean of {splits} splits (set against ranger on the same).", header, [[p, *cells(p, errors)] for p in some])
    show("Leaves per tree, mean.", header, [[p, *cells(p, leaves)] for p in some])
    tested = table.rows - int(0.7 * table.rows)
    show(
        f"Prediction of {tested} rows, one thread: wall milliseconds, median over the splits (ratio to ranger's compiled part: median, range).",
        header,
        [[p, *cells(p, predicting)] for p in some],
    )


def threads_table(bench, table, peers, splits):
    threaded = [peer for peer in THREADED if peer in peers]
    chosen = list(bench.options.configurations)
    results = bench.interleaved(threaded, table, chosen, [1, 2], splits)
    rows = []
    for peer in threaded:
        row = [peer]
        for name in chosen:
            one, two = results[peer, name, 1], results[peer, name, 2]
            row.append(f"{ratio(one, two, 'fit_seconds'):.2f}")
        rows.append(row)
    show("How many times faster two threads are than one, wall time, median of the ratios.", ["", *chosen], rows)


def growth_table(bench, base, header, rows, peers, splits):
    chance = random.Random(10)
    some = [peer for peer in ("ranger", "dml-core", "captime") if peer in peers]
    tables = {"as it is": base}
    for name, made in (("10 x rows", more_rows(header, rows, base.predict, chance)), ("10 x columns", more_columns(header, rows, base.predict))):
        path = bench.folder / f"{name.replace(' ', '-')}.csv"
        write(path, *made)
        tables[name] = Table(path, base.predict, *made, bench.folder, path.stem)
    results = {name: bench.interleaved(some, table, ["A"], [1], splits) for name, table in tables.items()}
    lines = []
    for peer in some:
        fits = {name: median(result[peer, "A", 1], "fit_cpu_seconds") for name, result in results.items()}
        lines.append([peer, *(f"{fits[name]:.3f} ({fits[name] / fits['as it is']:.2f})" for name in tables)])
    show("Growth in configuration A (mtry 20): CPU seconds of the fit (ratio to the table as it is).", ["", *tables], lines)


def stop_table(bench, table, fits):
    """How late a limit stops a fit, and what checking the clock costs a fit that is not stopped."""
    chance = random.Random(4)
    lines = []
    for resource, field in (("wall", "fit_seconds"), ("cpu", "fit_cpu_seconds")):
        for threads in (1, 2):
            late = []
            while len(late) < fits:
                limit = chance.uniform(0.002, 0.1)
                extra = ["--limit", f"{limit:.6f}s", "--resource", resource]
                result = bench.fit("captime", table, "C", threads, 1, extra)
                if result["stopped"]:
                    late.append(1000 * (result[field] - limit))
            late.sort()
            at = [late[len(late) // 2], late[int(0.99 * (len(late) - 1))], late[-1]]
            lines.append([resource, str(threads), *(f"{ms:.3f}" for ms in at)])
    show(
        f"Lateness of a stop in configuration C, milliseconds beyond the limit, {fits} limits from 2 to 100 ms.",
        ["limit on", "threads", "median", "p99", "worst"],
        lines,
    )
    without, with_limit = [], []
    for number in range(1, max(10, fits // 5) + 1):
        pair = [(without, ()), (with_limit, ("--limit", "1h", "--resource", "cpu"))]
        for results, extra in pair if number % 2 else reversed(pair):
            results.append(bench.fit("captime", table, "B", 1, number % 10 + 1, extra))
    cost = ratio(with_limit, without, "fit_cpu_seconds") - 1
    show(
        f"Cost of a limit that is never hit, configuration B, CPU time, median of {len(without)} interleaved pairs.",
        ["without limit", "with limit", "cost"],
        [[f"{median(without, 'fit_cpu_seconds'):.4f} s", f"{median(with_limit, 'fit_cpu_seconds'):.4f} s", f"{100 * cost:+.2f} %"]],
    )


def effects_table(bench, table, splits):
    """The effect of each parameter on error, time and work, over all 16 corners of the paper's grid."""
    names, ends = ("trees", "mtry", "min node size", "sample fraction"), ((100, 700), (20, 30), (3, 9), (0.55, 0.8))
    corners = list(itertools.product((0, 1), repeat=4))
    fits = {}
    for number in range(1, splits + 1):
        say(f"split {number} of {splits}: {table.path}, 16 corners")
        for corner in corners:
            CONFIGURATIONS[str(corner)] = tuple(end[side] for end, side in zip(ends, corner))
            fits[corner, number] = bench.fit("captime", table, str(corner), 1, number)
    rows = []
    for place, name in enumerate(names):
        row = [f"{name} {ends[place][0]} to {ends[place][1]}"]
        for field in ("rmse", "fit_cpu_seconds", "work"):
            changes = []
            for number in range(1, splits + 1):
                sides = [[math.log(fits[corner, number][field]) for corner in corners if corner[place] == side] for side in (0, 1)]
                changes.append(100 * (math.exp(statistics.fmean(sides[1]) - statistics.fmean(sides[0])) - 1))
            doubt = 1.96 * statistics.stdev(changes) / math.sqrt(splits) if splits > 1 else math.nan
            row.append(f"{statistics.fmean(changes):+.2f} ± {doubt:.2f} %")
        rows.append(row)
    show(f"Main effects over 16 corners and {splits} splits, mean and 95 % interval over the splits.", ["", "RMSE", "CPU time", "work"], rows)


def instructions_table(bench, table):
    """What checking flag and clock costs, counted and not timed, so that a busy machine does not disturb it."""
    if shutil.which("valgrind") is None:
        say("no valgrind: instructions are not counted")
        return
    rows = []
    for resource in ("none", "wall", "cpu", "work"):
        limit = [] if resource == "none" else ["--limit", "1e15" if resource == "work" else "1h", "--resource", resource]
        row = [resource]
        for peer in ("captime portable", "captime"):
            looking, all_of_it = instructions(bench, table, peer, limit)
            row += [f"{all_of_it / 1e6:.1f} million", f"{looking / 1e6:.3f} million", f"{100 * looking / all_of_it:.3f} %"]
        rows.append(row)
    show(
        "Instructions of a fit in configuration A, and those of them that book work and look at flag and clock.",
        ["limit on", "fit, portable", "looking", "share", "fit, this machine's best", "looking", "share"],
        rows,
    )


def instructions(bench, table, peer, extra):
    """Instructions that callgrind counts in the forest's sources: those of stop.rs, and all. Inlined code counts for its file."""
    out = bench.folder / "callgrind.out"
    before = ["valgrind", "--tool=callgrind", f"--callgrind-out-file={out}", "--quiet"]
    bench.fit(peer, table, "A", 1, 1, extra, before)
    counts, here, names, is_call = {}, None, {}, False
    for line in open(out):
        key, _, value = line.partition("=")
        if key in ("fl", "fi", "fe", "cfl", "cfi"):
            # A file is named where it is first mentioned, even as the file of a called function.
            number, _, name = value.strip().partition(" ")
            name = names.setdefault(number, name)
            here = here if key.startswith("c") else name
        elif line.startswith("calls="):
            # What follows is the sum over the callee, which is counted there.
            is_call = True
        elif line[0].isdigit() or line[0] in "+-*":
            if not is_call:
                counts[here] = counts.get(here, 0) + int(line.split()[1])
            is_call = False
    learner = {name: count for name, count in counts.items() if "/forest/src/" in name and "/dataset/" not in name}
    looking = sum(count for name, count in learner.items() if name.endswith("/stop.rs"))
    return looking, sum(learner.values())


def parse():
    parser = argparse.ArgumentParser(
        prog="compare-forests", description="Compares captime's forest with others on the same splits of the same data."
    )
    parser.add_argument("--data", type=pathlib.Path, default=HERE.parent.parent / "datasets/ames_like.csv")
    parser.add_argument("--predict", default="Sale_Price", help="the column to predict, a number")
    parser.add_argument("--drop", default="", help="columns to leave out, separated by commas")
    parser.add_argument("--splits", type=int, default=10, help="how many random splits (10)")
    parser.add_argument("--peer-splits", type=int, default=10, help="how many of them for all but ranger and captime (10)")
    parser.add_argument("--configurations", default="ABC", help="which of A, B and C to fit (ABC)")
    parser.add_argument("--stops", type=int, default=200, help="how many fits to stop (200)")
    parser.add_argument("--only", default=",".join(TABLES), help=f"tables to make, of {','.join(TABLES)}")
    parser.add_argument("--without", default="", help="peers to leave out, separated by commas")
    parser.add_argument("--json", type=pathlib.Path, help="append every measurement to this file")
    parser.add_argument("--cache", type=pathlib.Path, required=True, help=argparse.SUPPRESS)
    parser.add_argument("--captime", type=pathlib.Path, required=True, help=argparse.SUPPRESS)
    return parser.parse_args()


def main():
    options = parse()
    without = set(filter(None, options.without.split(",")))
    wanted = options.only.split(",")
    for name in without - set(PEERS):
        sys.exit(f"compare-forests: unknown peer: {name} (known: {', '.join(PEERS)})")
    for name in set(wanted) - set(TABLES):
        sys.exit(f"compare-forests: unknown table: {name} (known: {', '.join(TABLES)})")
    if not options.configurations or set(options.configurations) - set(CONFIGURATIONS):
        sys.exit(f"compare-forests: configurations must be among {', '.join(CONFIGURATIONS)}")
    if "ranger" in without:
        sys.exit("compare-forests: ranger cannot be left out, because the others are compared with it")
    header, rows = read(options.data, set(options.drop.split(",")))
    if options.predict not in header:
        sys.exit(f"compare-forests: {options.data} has no column {options.predict}")
    peers = [peer for peer in PEERS if peer not in without]
    started = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="compare-forests-") as folder:
        folder = pathlib.Path(folder)
        bench = Bench(options, folder)
        table = Table(options.data, options.predict, header, rows, folder, "data")
        say(f"load average {os.getloadavg()[0]:.1f} on {os.cpu_count()} CPUs")
        if "fit" in wanted:
            fit_table(bench, table, peers, options.splits)
        if "threads" in wanted:
            threads_table(bench, table, peers, max(3, options.splits // 2))
        if "growth" in wanted:
            growth_table(bench, table, header, rows, peers, max(3, options.splits // 2))
        if "stop" in wanted:
            stop_table(bench, table, options.stops)
        if "instructions" in wanted:
            instructions_table(bench, table)
        if "effects" in wanted:
            effects_table(bench, table, options.splits)
    say(f"{time.monotonic() - started:.0f} s in all")


if __name__ == "__main__":
    main()
