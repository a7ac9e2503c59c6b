"""The table of scripts/compare-tuners."""

import argparse
import json
import math
import os
import statistics
import subprocess
import sys
import tempfile
from concurrent.futures import ProcessPoolExecutor

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from replay import Replay, invent, seconds  # noqa: E402


def arguments():
    parser = argparse.ArgumentParser(prog="scripts/compare-tuners", description="captime's policies against other tuners.")
    parser.add_argument("--scenario", help="a scenario with a recorded matrix and a file of arms [default: simulated runs]")
    parser.add_argument("--budget", default="1h,10h", help="CPU times to spend [default: 1h,10h]")
    parser.add_argument("--seeds", type=int, default=10, help="repetitions of everything [default: 10]")
    parser.add_argument("--policy", action="append", help="a policy of captime; repeatable [default: similar-ts, rcucb, uniform]")
    parser.add_argument("--peers", default="random,optuna,smac,irace", help="tuners to compare with")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="repetitions at a time [default: one per CPU]")
    parser.add_argument("--json", help="also write all answers to this file")
    parser.add_argument("--pull", metavar="SCENARIO", help="instead: tuners on the open space of this scenario (a surrogate, or a command), all runs through `captime pull`")
    parser.add_argument("--tuners", default="captime,captime-rcucb,captime-halving,random,optuna,smac-ac,smac-log,irace", help="with --pull: whom to compare")
    parser.add_argument("--out", default="compare-tuners.csv", help="with --pull: results; what is in it is not run again [default: compare-tuners.csv]")
    parser.add_argument("--svg", help="with --pull: also draw the picture")
    return parser.parse_args()


def play(job):
    from peers import PEERS

    name, path, budgets, seed = job
    replay = Replay.read(path)
    purse = PEERS[name](replay, budgets, seed)
    worth = [None if arm is None else (replay.test(arm), replay.training(arm)) for arm in purse.answers]
    return name, seed, worth, purse.spent, purse.runs, getattr(purse, "overspent", []), getattr(purse, "why", None)


def cell(values):
    if not values:
        return "no answer"
    error = statistics.stdev(values) / math.sqrt(len(values)) if len(values) > 1 else None
    mean = f"{statistics.mean(values):.0f}"
    return mean if error is None else f"{mean} ± {error:.0f}"


def main():
    given = arguments()
    budgets = sorted(seconds(text) for text in given.budget.split(","))
    if given.pull:
        import pulls

        pulls.compare(given.pull, given.tuners.split(","), budgets, given.seeds, given.out)
        text, curves = pulls.table(given.out)
        print(text)
        if given.svg:
            with open(given.svg, "w") as file:
                file.write(pulls.picture(curves))
        return
    policies = given.policy or ["similar-ts", "rcucb", "uniform"]
    with tempfile.TemporaryDirectory() as folder:
        path = given.scenario or invent(folder)
        replay = Replay.read(path)
        rows, kept = [], {}
        study = [os.environ["CAPTIME"], "study", path, "--budget", given.budget, "--repetitions", str(given.seeds), "--format", "json"]
        for policy in policies:
            study += ["--policy", policy]
        marks = json.loads(subprocess.run(study, check=True, capture_output=True, text=True).stdout)
        for spec, mark in zip(policies, marks):
            tests = [f"{at['test']['mean']:.0f}" + (f" ± {at['test']['se']:.0f}" if at["test"]["se"] else "") for at in mark["budgets"]]
            rows.append((mark["budgets"][-1]["test"]["mean"], f"captime, `{spec}`", tests, ""))
            kept[spec] = mark["budgets"]
        peers = [name for name in given.peers.split(",") if name]
        jobs = [(name, path, budgets, seed) for name in peers for seed in range(1, given.seeds + 1)]
        answers = {name: [] for name in peers}
        with ProcessPoolExecutor(given.jobs) as pool:
            for name, seed, worth, spent, runs, overspent, why in pool.map(play, jobs):
                print(f"{name}, seed {seed}: {worth}, {runs} runs{', ' + why if why else ''}", file=sys.stderr, flush=True)
                answers[name].append((worth, spent, runs, overspent, why))
        for name, of in answers.items():
            tests = [cell([worth[place][0] for worth, *_ in of if worth[place]]) for place in range(len(budgets))]
            last = [worth[-1][0] for worth, *_ in of if worth[-1]]
            over = [share for *_, overspent, _ in of for share in overspent]
            notes = [f"spends up to {max(over):.2f} of the budget"] if over and max(over) > 1.01 else []
            refused = [why for *_, why in of if why]
            notes += [f"{len(refused)} of {len(of)}: {refused[0]}"] if refused else []
            note = "; ".join(notes)
            rows.append((statistics.mean(last) if last else math.inf, name, tests, note))
            kept[name] = [worth for worth, *_ in of]
        arms = range(replay.arms)
        trained = sorted(arms, key=lambda arm: (replay.training(arm), arm))
        print(f"Test PAR10 of the answer, mean ± standard error over {given.seeds} seeds; {replay.arms} arms, {replay.train} training and "
              f"{len(replay.times) - replay.train} test instances, cutoff {replay.cutoff:g} s. Best possible "
              f"{min(map(replay.test, arms)):.0f}, best training arm {replay.test(trained[0]):.0f}, median training arm "
              f"{replay.test(trained[len(trained) // 2]):.0f}.\n")
        print("| tuner | " + " | ".join(given.budget.split(",")) + " | |\n|---|" + "---|" * len(budgets) + "---|")
        for _, name, tests, note in sorted(rows, key=lambda row: row[0]):
            print(f"| {name} | " + " | ".join(tests) + f" | {note} |")
        if given.json:
            with open(given.json, "w") as file:
                json.dump(kept, file, indent=1)


if __name__ == "__main__":
    main()
