"""Tuners on an open space, every run through `captime pull --lines`: the same limits and the same accounting for all.

A run costs what it consumed. The run that would exceed the budget is lost. The answer is judged on the test instances, at the
full limit, for free. Results are appended to a CSV file; what is in it already is not run again.
"""

import csv
import json
import math
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time

LEAST = 1e-4  # nothing is free, and nobody pays more than the run consumed
FIXED = 8  # instances on which tuners without instances of their own judge a configuration
COLUMNS = ["tuner", "budget", "seed", "test_par10", "spent", "runs", "own_seconds", "configuration"]


class Over(Exception):
    """The budget is spent."""


class Target:
    """A scenario whose pulls captime runs."""

    def __init__(self, path):
        import yaml

        self.path = path
        with open(path) as file:
            self.scenario = yaml.safe_load(file)
        self.captime = subprocess.Popen(
            [os.environ["CAPTIME"], "pull", path, "--lines"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        probe = self.ask({})
        if "error" in probe:
            sys.exit(f"{path}: {probe['error']['what']}")
        self.cutoff = probe["limit"]
        count = 1
        while "error" not in self.ask({"instance": count + 1, "limit": 1e-9}):
            count += 1
        names = [self.ask({"instance": number, "limit": 1e-9})["instance"] for number in range(1, count + 1)]
        kept = self.kept(names)
        self.training = [name for name in names if name not in kept]
        self.test = sorted(kept)

    def kept(self, names):
        """The instances to judge on: those under `test`, or else the second half."""
        target = self.scenario["target"]
        inner = target.get("surrogate", target)
        if isinstance(inner.get("test"), list):
            return set(inner["test"])
        if isinstance(inner.get("test"), str):
            # Kept back by a pattern: captime appends them.
            training = subprocess.run([os.environ["CAPTIME"], "check", self.path], capture_output=True, text=True).stdout
            count = int(training.split("instances ")[1].split(",")[0])
            return set(names[count:])
        return set(names[(len(names) + 1) // 2:])

    def ask(self, request):
        print(json.dumps(request), file=self.captime.stdin, flush=True)
        return json.loads(self.captime.stdout.readline())

    def par10(self, configuration, instances):
        costs = []
        for place, instance in enumerate(instances):
            answer = self.ask({"configuration": configuration, "instance": instance, "seed": 1000 + place})
            if "error" in answer:
                return math.nan
            costs.append(answer["consumption"] if answer["outcome"] == "rewarded" else 10 * self.cutoff)
        return statistics.mean(costs)

    def configspace(self):
        """The space as ConfigSpace knows it, by way of `captime import`."""
        from ConfigSpace import ConfigurationSpace

        arms = self.scenario["arms"]
        with tempfile.TemporaryDirectory() as folder:
            source = os.path.join(os.path.dirname(os.path.abspath(self.path)), str(arms["space"]))
            if not isinstance(arms["space"], str):
                import yaml

                source = os.path.join(folder, "space.yaml")
                with open(source, "w") as file:
                    yaml.safe_dump({key: arms[key] for key in ("space", "forbid") if key in arms}, file, sort_keys=False)
            written = subprocess.run(
                [os.environ["CAPTIME"], "import", source, "--to", "configspace"], check=True, capture_output=True, text=True).stdout
            path = os.path.join(folder, "space.json")
            with open(path, "w") as file:
                file.write(written)
            return ConfigurationSpace.from_json(path)


class Purse:
    """A budget of consumption."""

    def __init__(self, target, budget):
        self.target, self.budget = target, budget
        self.spent, self.runs, self.waited = 0.0, 0, 0.0

    def run(self, configuration, instance, seed, limit=None):
        """The cost of a run, ten cutoffs if it was not solved; none if it was cut off below the cutoff."""
        limit = min(limit or math.inf, self.target.cutoff)
        begin = time.monotonic()
        answer = self.target.ask({"configuration": configuration, "instance": instance, "seed": seed, "limit": limit})
        self.waited += time.monotonic() - begin
        if "error" in answer:
            # A configuration that the constraints forbid costs a tuner next to nothing.
            self.pay(LEAST)
            return 10 * self.target.cutoff
        self.pay(max(LEAST, answer.get("consumption") or limit))
        if answer["outcome"] == "rewarded":
            return answer["consumption"]
        return 10 * self.target.cutoff if limit == self.target.cutoff or answer["outcome"] == "failed" else None

    def pay(self, cost):
        if self.spent + cost > self.budget:
            raise Over
        self.spent += cost
        self.runs += 1


def plain(configuration):
    return {name: value.item() if hasattr(value, "item") else value for name, value in dict(configuration).items()}


def play_random(target, purse, seed):
    """Random configurations, each on the same few instances; the best mean."""
    space, chance = target.configspace(), random.Random(seed)
    space.seed(seed)
    instances = chance.sample(target.training, min(FIXED, len(target.training)))
    best = (math.inf, None)
    try:
        while True:
            configuration = plain(space.sample_configuration())
            mean = statistics.mean(purse.run(configuration, instance, 1) for instance in instances)
            best = min(best, (mean, configuration), key=lambda pair: pair[0])
    except Over:
        return best[1]


def play_optuna(target, purse, seed):
    """TPE with the median pruner, each trial on the same few instances."""
    import optuna
    from ConfigSpace import CategoricalHyperparameter, Constant, OrdinalHyperparameter
    from ConfigSpace.hyperparameters import IntegerHyperparameter

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    known = list(target.configspace().values())
    instances = random.Random(seed).sample(target.training, min(FIXED, len(target.training)))
    best = [(math.inf, None)]

    def value(trial, parameter):
        if isinstance(parameter, Constant):
            return parameter.value
        if isinstance(parameter, CategoricalHyperparameter):
            return trial.suggest_categorical(parameter.name, list(parameter.choices))
        if isinstance(parameter, OrdinalHyperparameter):
            return parameter.sequence[trial.suggest_int(parameter.name, 0, len(parameter.sequence) - 1)]
        suggest = trial.suggest_int if isinstance(parameter, IntegerHyperparameter) else trial.suggest_float
        return suggest(parameter.name, parameter.lower, parameter.upper, log=parameter.log)

    def objective(trial):
        # captime leaves out what is inactive.
        configuration = plain({parameter.name: value(trial, parameter) for parameter in known})
        costs = []
        for step, instance in enumerate(instances):
            costs.append(purse.run(configuration, instance, 1))
            trial.report(statistics.mean(costs), step)
            if trial.should_prune():
                raise optuna.TrialPruned
        best[0] = min(best[0], (statistics.mean(costs), configuration), key=lambda pair: pair[0])
        return statistics.mean(costs)

    study = optuna.create_study(
        sampler=optuna.samplers.TPESampler(seed=seed), pruner=optuna.pruners.MedianPruner(n_startup_trials=5, n_warmup_steps=2))
    try:
        study.optimize(objective)
    except Over:
        pass
    return best[0][1]


def play_smac(target, purse, seed, is_log):
    """SMAC3's facade for algorithm configuration; or, stronger on run times, the one for hyperparameters: it models log costs and uses log
    EI, and a run is capped at what makes its configuration ten times as bad as the incumbent."""
    import logging

    from smac import AlgorithmConfigurationFacade, HyperparameterOptimizationFacade, Scenario
    from smac.runhistory.dataclasses import TrialValue

    logging.disable(logging.CRITICAL)
    facade_of = HyperparameterOptimizationFacade if is_log else AlgorithmConfigurationFacade
    with tempfile.TemporaryDirectory() as folder:
        scenario = Scenario(
            target.configspace(), instances=target.training, instance_features={name: [place] for place, name in enumerate(target.training)},
            deterministic=True, n_trials=10**9, seed=seed, output_directory=folder)
        facade = facade_of(
            scenario, lambda config, instance, seed=0: 0.0, logging_level=False, overwrite=True,
            intensifier=AlgorithmConfigurationFacade.get_intensifier(scenario))
        answer, costs = [None], {}

        def incumbent():
            found = facade.intensifier.get_incumbents()
            return found[0] if found else None

        try:
            while True:
                info = facade.ask()
                best = incumbent()
                cap = None
                if is_log and best is not None and info.config != best and costs.get(best):
                    cap = max(LEAST, 10 * statistics.mean(costs[best]))
                cost = purse.run(plain(info.config), info.instance, 1, cap)
                # Cut off by its cap: at least ten times that.
                cost = 10 * cap if cost is None else cost
                costs.setdefault(info.config, []).append(cost)
                facade.tell(info, TrialValue(cost=cost, time=cost), save=False)
                answer[0] = incumbent()
        except (Over, StopIteration):
            pass
        return plain(answer[0]) if answer[0] is not None else None


def play_irace(target, purse, seed):
    """irace with capping. It plans its races by the budget, and every run is one `captime pull`; what it spends it says itself."""
    here = os.path.dirname(os.path.abspath(__file__))
    with tempfile.TemporaryDirectory() as folder:
        space = target.scenario["arms"]["space"]
        source = os.path.join(os.path.dirname(os.path.abspath(target.path)), str(space))
        if not isinstance(space, str):
            return None
        parameters = subprocess.run(
            [os.environ["CAPTIME"], "import", source, "--to", "irace"], check=True, capture_output=True, text=True).stdout
        with open(os.path.join(folder, "parameters.txt"), "w") as file:
            file.write(parameters)
        with open(os.path.join(folder, "instances.txt"), "w") as file:
            file.write("\n".join(target.training) + "\n")
        arguments = [folder, os.path.abspath(target.path), str(purse.budget), str(target.cutoff), str(seed)]
        done = subprocess.run(["Rscript", os.path.join(here, "irace_pulls.R"), *arguments], capture_output=True, text=True)
        last = (done.stdout.strip().splitlines() or [""])[-1]
        if done.returncode != 0 or not last.startswith("ANSWER "):
            told = [line for line in done.stderr.splitlines() if "Error" in line]
            print(f"irace: {(told or ['no answer'])[0]}", file=sys.stderr)
            return None
        answer = json.loads(last.removeprefix("ANSWER "))
        purse.spent, purse.runs = answer["spent"], answer["runs"]
        return answer["configuration"]


def play_captime(target, purse, seed, policy):
    """`captime run` until the budget is spent; the arm that it would use at the cutoff."""
    import yaml

    scenario = dict(target.scenario, name="compare", seed=seed, budget={"consumption": f"{purse.budget}s"}, slots=1)
    arms = dict(scenario["arms"])
    if policy != "levels":
        scenario["policy"] = policy
        arms.setdefault("sample", 300)
    elif "sample" in arms:
        del arms["sample"]
    scenario["arms"] = arms
    test = scenario["target"].get("surrogate")
    if test is not None and "test" not in test:
        scenario["target"] = {"surrogate": dict(test, test=target.test)}
    folder = os.path.dirname(os.path.abspath(target.path))
    path = os.path.join(folder, f".compare-{os.getpid()}.yaml")
    with tempfile.TemporaryDirectory() as runs:
        try:
            with open(path, "w") as file:
                yaml.safe_dump(scenario, file, sort_keys=False)
            done = subprocess.run([os.environ["CAPTIME"], "run", path, "--quiet", "--runs", runs], capture_output=True, text=True)
            if done.returncode not in (0, 3):
                sys.exit(f"captime: {done.stderr}")
            export = [os.environ["CAPTIME"], "export", "compare", "--format", "jsonl", "--runs", runs]
            rows = [json.loads(line) for line in subprocess.run(export, capture_output=True, text=True).stdout.splitlines()]
            purse.spent, purse.runs = sum(max(LEAST, row.get("consumption") or 0.0) for row in rows), len(rows)
            best = [os.environ["CAPTIME"], "best", "compare", "--limit", f"{target.cutoff}s", "--format", "json", "--runs", runs]
            answer = json.loads(subprocess.run(best, capture_output=True, text=True).stdout or "null")
        finally:
            os.unlink(path)
    return answer and answer.get("configuration")


TUNERS = {
    "captime": lambda target, purse, seed: play_captime(target, purse, seed, "levels"),
    "captime-rcucb": lambda target, purse, seed: play_captime(target, purse, seed, "rcucb"),
    "captime-halving": lambda target, purse, seed: play_captime(target, purse, seed, "halving"),
    "random": play_random,
    "optuna": play_optuna,
    "smac-ac": lambda target, purse, seed: play_smac(target, purse, seed, False),
    "smac-log": lambda target, purse, seed: play_smac(target, purse, seed, True),
    "irace": play_irace,
}


def compare(path, tuners, budgets, seeds, out):
    done = set()
    if os.path.exists(out):
        with open(out) as file:
            done = {(row["tuner"], float(row["budget"]), int(row["seed"])) for row in csv.DictReader(file)}
    target = Target(path)
    print(f"{len(target.training)} training and {len(target.test)} test instances, cutoff {target.cutoff:g} s", file=sys.stderr)
    for seed in range(1, seeds + 1):
        for budget in budgets:
            for name in tuners:
                if (name, budget, seed) in done:
                    continue
                purse, begin = Purse(target, budget), time.monotonic()
                configuration = TUNERS[name](target, purse, seed)
                own = time.monotonic() - begin - purse.waited
                test = target.par10(configuration, target.test) if configuration else math.nan
                is_new = not os.path.exists(out)
                with open(out, "a", newline="") as file:
                    writer = csv.writer(file)
                    if is_new:
                        writer.writerow(COLUMNS)
                    writer.writerow([name, budget, seed, test, purse.spent, purse.runs, round(own, 3), json.dumps(configuration)])
                print(f"{name}, {budget:g} s, seed {seed}: {test:.4g} after {purse.runs} runs", file=sys.stderr, flush=True)


def table(out):
    with open(out) as file:
        rows = list(csv.DictReader(file))
    budgets = sorted({float(row["budget"]) for row in rows})
    lines = ["| tuner | " + " | ".join(f"{budget:g} s" for budget in budgets) + " | its own time |", "|---|" + "---|" * (len(budgets) + 1)]
    curves = {}
    for name in dict.fromkeys(row["tuner"] for row in rows):
        cells, curve = [], []
        for budget in budgets:
            of = [row for row in rows if row["tuner"] == name and float(row["budget"]) == budget]
            values = [float(row["test_par10"]) for row in of if row["test_par10"] != "nan"]
            if not values:
                cells.append("no answer")
                continue
            error = statistics.stdev(values) / math.sqrt(len(values)) if len(values) > 1 else 0.0
            curve.append((budget, statistics.mean(values), error))
            cells.append(f"{statistics.mean(values):.4g} ± {error:.2g}" + (f" ({len(of) - len(values)} without answer)" if len(values) < len(of) else ""))
        own = statistics.mean(float(row["own_seconds"]) for row in rows if row["tuner"] == name)
        lines.append(f"| {name} | " + " | ".join(cells) + f" | {own:.1f} s |")
        curves[name] = curve
    return "\n".join(lines), curves


def picture(curves):
    """Test PAR10 against the budget, both on log scales, with bands of one standard error."""
    points = [point for curve in curves.values() for point in curve]
    if not points:
        return ""
    xs = [math.log(budget) for budget, _, _ in points]
    ys = [math.log(max(1e-9, value)) for _, mean, error in points for value in (mean - error, mean + error) if value > 0]
    (x0, x1), (y0, y1) = (min(xs), max(xs)), (min(ys), max(ys))
    place = lambda budget, value: (
        70 + 460 * (math.log(budget) - x0) / ((x1 - x0) or 1), 340 - 300 * (math.log(max(1e-9, value)) - y0) / ((y1 - y0) or 1))
    colours = ["#1b6ca8", "#63a4d4", "#0b3954", "#999999", "#e07a1f", "#7a4fa3", "#b35c9e", "#3f8f4f"]
    svg = ['<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 720 400" font-family="sans-serif" font-size="13">',
           '<rect width="720" height="400" fill="white"/>',
           '<path d="M70 30V340H530" fill="none" stroke="#444"/>',
           '<text x="300" y="388" text-anchor="middle">CPU time spent on runs, s</text>',
           '<text x="16" y="185" text-anchor="middle" transform="rotate(-90 16 185)">test PAR10, s</text>']
    for budget in sorted({budget for budget, _, _ in points}):
        svg.append(f'<text x="{place(budget, 1)[0]:.1f}" y="360" text-anchor="middle">{budget:g}</text>')
    for share in range(5):
        value = math.exp(y0 + (y1 - y0) * share / 4)
        svg.append(f'<text x="62" y="{344 - 75 * share}" text-anchor="end">{value:.3g}</text>')
    for number, (name, curve) in enumerate(curves.items()):
        colour = colours[number % len(colours)]
        upper = [place(budget, mean + error) for budget, mean, error in curve]
        lower = [place(budget, max(mean - error, mean / 10)) for budget, mean, error in curve]
        band = " ".join(f"{x:.1f},{y:.1f}" for x, y in upper + lower[::-1])
        line = " ".join(f"{x:.1f},{y:.1f}" for x, y in (place(budget, mean) for budget, mean, _ in curve))
        svg.append(f'<polygon points="{band}" fill="{colour}" opacity="0.15"/><polyline points="{line}" fill="none" stroke="{colour}" stroke-width="2"/>')
        svg.append(f'<path d="M545 {40 + 22 * number}h24" stroke="{colour}" stroke-width="3"/><text x="576" y="{44 + 22 * number}">{name}</text>')
    return "\n".join([*svg, "</svg>"]) + "\n"
