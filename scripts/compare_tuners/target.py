"""What tuners tune: the runs of a scenario, each started by `captime pull`, and a budget of CPU time to spend on them."""

import csv
import json
import math
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time


def captime(*arguments):
    """Runs captime and returns what it prints."""
    done = subprocess.run([os.environ["CAPTIME"], *arguments], capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"captime {' '.join(arguments)}: {done.stderr}")
    return done.stdout


class Target:
    """A scenario. All tuners run its configurations on its training instances; answers are judged on the others."""

    def __init__(self, path):
        import yaml

        self.path = os.path.abspath(path)
        with open(path) as file:
            self.scenario = yaml.safe_load(file)
        self.folder = os.path.dirname(self.path)
        # Of a list, tuners search the space of its columns, and the nearest arm runs.
        self.arms = self.listed() if "file" in self.scenario["arms"] else None
        self.pulls = subprocess.Popen(
            [os.environ["CAPTIME"], "pull", path, "--lines"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        probe = self.ask({"limit": 1e-9})
        if "error" in probe:
            sys.exit(f"{path}: {probe['error']['what']}")
        self.is_virtual = "wall_seconds" not in probe
        self.cutoff = self.largest_limit()
        names = []
        while "error" not in (answer := self.ask({"instance": len(names) + 1, "limit": 1e-9})):
            names.append(answer["instance"])
        self.test = self.kept_back(names)
        self.training = [name for name in names if name not in self.test]
        self.judged = {}

    def largest_limit(self):
        limits = self.scenario["limits"]
        return seconds(limits["to"] if "to" in limits else limits["max"] if "max" in limits else limits["grid"][-1])

    def kept_back(self, names):
        """The instances under `test`, which come last if a pattern names them. Without any, the second half."""
        target = next(iter(self.scenario["target"].values())) if self.is_virtual else self.scenario["target"]
        test = target.get("test")
        if isinstance(test, list):
            return test
        count = (len(names) + 1) // 2 if test is None else int(re.search(r"instances\s+(\d+)", captime("check", self.path)).group(1))
        return names[count:]

    def held_back(self):
        """The scenario with its test instances kept from captime, too."""
        if not self.is_virtual:
            return self.scenario
        (kind, spec), = self.scenario["target"].items()
        return dict(self.scenario, target={kind: dict(spec, test=self.test)})

    def listed(self):
        with open(os.path.join(self.folder, self.scenario["arms"]["file"])) as file:
            return [{name: plain(text) for name, text in row.items()} for row in csv.DictReader(file)]

    def nearest(self, configuration):
        """The number of the listed arm that is nearest: 0 to 1 between numbers, by rank, 0 or 1 between words."""
        def distance(arm):
            total = 0.0
            for name, value in arm.items():
                given = configuration.get(name)
                if value is None or given is None or value == given:
                    continue
                ranks = self.ranks[name]
                total += abs(ranks[value] - ranks[given]) / (len(ranks) - 1) if given in ranks and is_number(value) else 1.0
            return total

        return 1 + min(range(len(self.arms)), key=lambda place: distance(self.arms[place]))

    def ask(self, request):
        if self.arms is not None and "configuration" in request:
            request = dict(request, arm=self.nearest(request["configuration"]))
            del request["configuration"]
        print(json.dumps(request), file=self.pulls.stdin, flush=True)
        return json.loads(self.pulls.stdout.readline())

    def judge(self, configuration):
        """PAR10 on the test instances, at the full limit."""
        key = json.dumps(configuration, sort_keys=True)
        if key not in self.judged:
            costs = []
            for place, instance in enumerate(self.test):
                answer = self.ask({"configuration": configuration, "instance": instance, "seed": 1000 + place})
                if "error" in answer:
                    return math.nan
                costs.append(answer["consumption"] if answer["outcome"] == "rewarded" else 10 * self.cutoff)
            self.judged[key] = statistics.mean(costs)
        return self.judged[key]

    def space_as(self, language):
        """The text of the space in the language of another tuner, by way of `captime import`."""
        arms = self.scenario["arms"]
        if isinstance(arms.get("space"), str):
            return captime("import", os.path.join(self.folder, arms["space"]), "--to", language)
        space = {key: arms[key] for key in ("space", "forbid") if key in arms}
        if "space" in space:
            # Command lines are captime's, and irace cannot write down an argument for each value.
            space["space"] = {name: {key: value for key, value in parameter.items() if key != "argument"} for name, parameter in space["space"].items()}
        if self.arms is not None:
            space = {"space": {name: column(ranks, self.arms[0][name]) for name, ranks in self.ranks.items()}}
        with tempfile.NamedTemporaryFile("w", suffix=".yaml") as file:
            json.dump(space, file)  # which is YAML, too
            file.flush()
            return captime("import", file.name, "--from", "yaml", "--to", language)

    @property
    def ranks(self):
        """Of listed arms: the values of each parameter, in order, with their ranks."""
        if not hasattr(self, "known_ranks"):
            columns = {name: {arm[name] for arm in self.arms} - {None} for name in self.arms[0]}
            self.known_ranks = {
                name: {value: rank for rank, value in enumerate(sorted(values, key=lambda value: (str(type(value)), value)))}
                for name, values in columns.items() if values}
        return self.known_ranks

    def configspace(self, seed):
        from ConfigSpace import ConfigurationSpace

        with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
            file.write(self.space_as("configspace"))
            file.flush()
            space = ConfigurationSpace.from_json(file.name)
        space.seed(seed)
        return space


def column(ranks, default):
    values = list(ranks)
    kind = "ordered" if all(map(is_number, values)) else "choice"
    return {kind: values, "default": values[len(values) // 2] if default is None else default}


def plain(text):
    """A cell of a CSV file: empty, a number, or a word."""
    try:
        number = float(text)
        return int(number) if number == int(number) and "." not in text else number
    except ValueError:
        return text or None


def is_number(value):
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def seconds(text):
    """`1h 30m`, `300s`, `2.5`."""
    if is_number(text):
        return float(text)
    units = {"ms": 1e-3, "s": 1, "m": 60, "min": 60, "h": 3600, "d": 86400, "": 1}
    return sum(float(number) * units[unit] for number, unit in re.findall(r"([0-9.]+)\s*([a-z]*)", text))


class Over(Exception):
    """The last budget is spent."""


class Purse:
    """Budgets of CPU time, the answer at each, and the CPU time that the tuner itself took until then."""

    LEAST = 1e-4  # what the shortest run costs

    def __init__(self, target, budgets):
        self.target, self.budgets = target, sorted(budgets)
        self.spent, self.runs = 0.0, 0
        self.answers = []  # per budget: configuration, spent, runs, own CPU time
        self.begin = time.process_time()

    def run(self, configuration, instance, seed, answer, limit=None):
        """The cost of a run: its time, ten cutoffs if it was not solved, nothing if it was cut off below the cutoff. The run that
        would exceed a budget has not ended when that is spent, so `answer` does not know it."""
        limit = min(limit or math.inf, self.target.cutoff)
        begin = time.process_time()
        said = self.target.ask({"configuration": configuration, "instance": instance, "seed": seed, "limit": limit})
        # Finding the nearest listed arm is not the tuner's work.
        self.begin += time.process_time() - begin
        # A configuration that the constraints forbid costs next to nothing.
        cost = self.LEAST if "error" in said else max(self.LEAST, said.get("consumption") or limit)
        while len(self.answers) < len(self.budgets) and self.spent + cost > self.budgets[len(self.answers)]:
            self.note(answer())
        if len(self.answers) == len(self.budgets):
            raise Over
        self.spent += cost
        self.runs += 1
        if said.get("outcome") == "rewarded":
            return said["consumption"]
        return None if limit < self.target.cutoff and said.get("outcome") == "censored" else 10 * self.target.cutoff

    def note(self, configuration, own=None):
        own = time.process_time() - self.begin if own is None else own
        self.answers.append((configuration, self.spent, self.runs, own))
