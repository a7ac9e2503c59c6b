"""Recorded runs that tuners play on in virtual time: what a run costs, how good an answer is, when the budget is used up."""

import csv
import math
import random
import re


class Over(Exception):
    """The budget is spent; the run in flight is lost."""


def seconds(text):
    """`1h 30m`, `300s`, `2.5`."""
    if isinstance(text, (int, float)):
        return float(text)
    units = {"ms": 1e-3, "s": 1, "m": 60, "min": 60, "h": 3600, "d": 86400, "": 1}
    parts = re.findall(r"([0-9.]+)\s*([a-z]*)", text)
    return sum(float(number) * units[unit] for number, unit in parts)


class Replay:
    LEAST = 0.01  # what the shortest run costs
    SNAP_CACHE = 100_000

    def __init__(self, times, names, columns, cutoff):
        self.times = times  # by instance, then arm; None where it was not solved
        self.columns = columns  # by arm: its values
        self.names = names  # of the parameters
        self.cutoff = cutoff
        self.arms = len(columns)
        self.train = (len(times) + 1) // 2
        # Numbers are ordered, words are not.
        self.values = []
        self.is_ordered = []
        for place in range(len(names)):
            values = sorted({column[place] for column in columns}, key=order)
            self.values.append(values)
            self.is_ordered.append(all(isinstance(value, float) for value in values))
        self.snapped = {}

    @classmethod
    def read(cls, path):
        """From a scenario with a recorded matrix."""
        import os

        import yaml

        folder = os.path.dirname(os.path.abspath(path))
        with open(path) as file:
            scenario = yaml.safe_load(file)
        target = scenario["target"]["recorded"]
        cutoff, unsolved = seconds(target["cutoff"]), target.get("unsolved", math.inf)
        times = []
        with open(os.path.join(folder, target["consumption"])) as file:
            for row in csv.reader(file, skipinitialspace=True):
                cells = [number(cell) for cell in row[1:]]
                if row[0] == "instance" or not all(isinstance(cell, float) or cell in WORDS for cell in cells):
                    continue
                is_solved = lambda cell: isinstance(cell, float) and cell <= cutoff and cell != unsolved
                times.append([cell if is_solved(cell) else None for cell in cells])
        arms = scenario["arms"]
        dropped = arms.get("drop", [])
        dropped = [dropped] if isinstance(dropped, str) else dropped
        pattern = re.compile("|".join(re.escape(name).replace(r"\*", ".*") for name in dropped) or "$^")
        with open(os.path.join(folder, arms["file"])) as file:
            head, *rows = csv.reader(file, skipinitialspace=True)
        kept = [place for place, name in enumerate(head) if not pattern.fullmatch(name)]
        columns = [tuple(number(row[place]) for place in kept) for row in rows]
        return cls(times, [head[place] for place in kept], columns, cutoff)

    def par10(self, arm, instances):
        times = [self.times[instance][arm] for instance in instances]
        return sum(10 * self.cutoff if time is None else time for time in times) / len(times)

    def test(self, arm):
        return self.par10(arm, range(self.train, len(self.times)))

    def training(self, arm):
        return self.par10(arm, range(self.train))

    def nearest(self, values):
        """The recorded arm that is nearest to a configuration: steps between numbers, 0 or 1 between words."""
        values = tuple(values)
        if values not in self.snapped:
            if len(self.snapped) > self.SNAP_CACHE:
                self.snapped.clear()
            self.snapped[values] = min(range(self.arms), key=lambda arm: self.distance(values, self.columns[arm]))
        return self.snapped[values]

    def distance(self, a, b):
        sum = 0.0
        for place, (one, other) in enumerate(zip(a, b)):
            if one == other:
                continue
            if self.is_ordered[place]:
                values = self.values[place]
                sum += abs(values.index(one) - values.index(other)) / max(1, len(values) - 1)
            else:
                sum += 1
        return sum


WORDS = {"unsolved", "timeout", "failed", "crash", "memout", "other", "not_applicable"}


def number(text):
    try:
        return float(text)
    except ValueError:
        return text


def order(value):
    return (isinstance(value, str), value)


class Purse:
    """A budget of CPU time, and the answers along the way."""

    def __init__(self, replay, budgets):
        self.replay = replay
        self.budgets = sorted(budgets)
        self.spent = 0.0
        self.runs = 0
        self.answers = []

    def run(self, arm, instance, cap, answer):
        """Runs an arm up to `cap`. Returns whether it was solved, and the time. Calls `answer` when a budget is used up."""
        time = self.replay.times[instance][arm]
        is_solved = time is not None and time <= cap
        used = time if is_solved else cap
        cost = max(used, Replay.LEAST)
        while len(self.answers) < len(self.budgets) and self.spent + cost > self.budgets[len(self.answers)]:
            self.answers.append(answer())
        if len(self.answers) == len(self.budgets):
            raise Over
        self.spent += cost
        self.runs += 1
        return is_solved, used


def invent(folder, arms=300, instances=60, cutoff=300.0, seed=7):
    """Writes a scenario with simulated runs of a solver with six parameters. Returns its path."""
    import os

    chance = random.Random(seed)
    grid = {
        "decay": [0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99],
        "restarts": ["luby", "geometric", "none"],
        "effort": [1, 2, 4, 8, 16, 32],
        "branching": ["first", "activity", "random"],
        "cuts": [0, 1, 2, 3],
        "noise": [0, 0.01, 0.02, 0.05, 0.1],
    }
    configurations = [[chance.choice(values) for values in grid.values()] for _ in range(arms)]
    rows = []
    for instance in range(instances):
        # Instances differ in hardness, and a little in which arms suit them.
        hardness, taste = chance.gauss(3.2, 1.6), chance.gauss(0, 0.35)
        row = [f"instance-{instance + 1}"]
        for decay, restarts, effort, branching, cuts, noise in configurations:
            log = hardness + 12 * (decay - 0.9 - 0.05 * taste) ** 2
            log += {"luby": 0, "geometric": 0.4, "none": 1.2 + taste}[restarts]
            log += {"activity": 0, "first": 0.9 - taste, "random": 2.0}[branching]
            log += 0.25 * (math.log2(effort) - 3 - taste) ** 2 + 0.3 * abs(cuts - 1) + 6 * noise
            time = math.exp(log + chance.gauss(0, 0.7))
            row.append("unsolved" if time > cutoff else f"{time:.4f}")
        rows.append(row)
    with open(os.path.join(folder, "runs.csv"), "w", newline="") as file:
        csv.writer(file).writerows(rows)
    with open(os.path.join(folder, "arms.csv"), "w", newline="") as file:
        csv.writer(file).writerows([list(grid), *configurations])
    path = os.path.join(folder, "invented.yaml")
    with open(path, "w") as file:
        file.write(
            "name: invented\ntarget: {recorded: {consumption: runs.csv, cutoff: %ss}}\narms: {file: arms.csv}\n"
            "limits: {grid: [0.1s, 0.3s, 1s, 3s, 10s, 30s, 100s, %ss]}\nprice: {cost: x, penalty: 10 * x}\nseed: 1\n"
            % (int(cutoff), int(cutoff))
        )
    return path
