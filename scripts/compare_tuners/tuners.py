"""The tuners. Each spends the budgets of a purse on runs of a target, and notes its answer whenever one is used up. All of them begin with
the default configuration."""

import functools
import json
import math
import os
import random
import resource
import statistics
import subprocess
import tempfile

from target import Over, Purse, captime

FEW = 8  # training instances on which tuners without instances of their own judge a configuration


def plain(configuration):
    return {name: value.item() if hasattr(value, "item") else value for name, value in dict(configuration).items()}


def few_instances(target, seed):
    return random.Random(seed).sample(target.training, min(FEW, len(target.training)))


def play_random(target, purse, seed):
    """Random configurations (or listed arms), each on the same eight instances; the best mean wins."""
    space, chance = target.configspace(seed), random.Random(seed)
    best = (math.inf, None)
    configuration = plain(space.get_default_configuration())
    try:
        while True:
            costs = [purse.run(configuration, instance, 1, lambda: best[1]) for instance in few_instances(target, seed)]
            best = min(best, (statistics.mean(costs), configuration), key=lambda pair: pair[0])
            configuration = chance.choice(target.arms) if target.arms else plain(space.sample_configuration())
    except Over:
        pass


def play_optuna(target, purse, seed):
    """Optuna's TPE sampler with its median pruner. A trial runs its configuration on the same eight instances, one after the other."""
    import optuna
    from ConfigSpace import CategoricalHyperparameter, Constant, OrdinalHyperparameter
    from ConfigSpace.hyperparameters import IntegerHyperparameter

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    space = target.configspace(seed)
    known, first = list(space.values()), plain(space.get_default_configuration())
    instances = few_instances(target, seed)
    best = (math.inf, None)

    def value(trial, parameter):
        if isinstance(parameter, Constant):
            return parameter.value
        if isinstance(parameter, CategoricalHyperparameter):
            return trial.suggest_categorical(parameter.name, [choice.item() if hasattr(choice, "item") else choice for choice in parameter.choices])
        if isinstance(parameter, OrdinalHyperparameter):
            return parameter.sequence[trial.suggest_int(parameter.name, 0, len(parameter.sequence) - 1)]
        suggest = trial.suggest_int if isinstance(parameter, IntegerHyperparameter) else trial.suggest_float
        return suggest(parameter.name, parameter.lower, parameter.upper, log=parameter.log)

    def objective(trial):
        nonlocal best
        # captime ignores parameters that are inactive.
        configuration = plain({parameter.name: value(trial, parameter) for parameter in known})
        costs = []
        for step, instance in enumerate(instances):
            costs.append(purse.run(configuration, instance, 1, lambda: best[1]))
            trial.report(statistics.mean(costs), step)
            if trial.should_prune():
                raise optuna.TrialPruned
        best = min(best, (statistics.mean(costs), configuration), key=lambda pair: pair[0])
        return statistics.mean(costs)

    study = optuna.create_study(
        sampler=optuna.samplers.TPESampler(seed=seed), pruner=optuna.pruners.MedianPruner(n_startup_trials=5, n_warmup_steps=2))
    orders = {parameter.name: list(parameter.sequence) for parameter in known if isinstance(parameter, OrdinalHyperparameter)}
    study.enqueue_trial({name: orders[name].index(value) if name in orders else value for name, value in first.items()}, skip_if_exists=True)
    try:
        study.optimize(objective)
    except Over:
        pass


@functools.cache
def quicken(configuration_class):
    """Gives configurations that remember their text: SMAC3 compares each with hundreds, over and over."""
    text_of = configuration_class.__str__

    def text(self):
        if "remembered" not in self.__dict__:
            self.remembered = text_of(self)
        return self.remembered

    configuration_class.__str__ = configuration_class.__repr__ = text
    configuration_class.__hash__ = lambda self: hash(text(self))
    configuration_class.__eq__ = lambda self, other: self is other or (isinstance(other, configuration_class) and text(self) == text(other))


def play_smac(target, purse, seed, is_strong):
    """SMAC3's facade for algorithm configuration as it comes. Or a strong setting: a model of log costs with log EI (its facade for
    hyperparameters), the intensifier for instances, and its adaptive capping."""
    import logging

    import numpy
    from ConfigSpace import Configuration
    from smac import AlgorithmConfigurationFacade, HyperparameterOptimizationFacade, Scenario
    from smac.acquisition.maximizer.abstract_acquisition_maximizer import AbstractAcquisitionMaximizer
    from smac.main.exceptions import ConfigurationSpaceExhaustedException
    from smac.runhistory.dataclasses import TrialValue

    logging.disable(logging.CRITICAL)
    quicken(Configuration)
    space = target.configspace(seed)
    facade_of = HyperparameterOptimizationFacade if is_strong else AlgorithmConfigurationFacade
    options = {}
    if target.arms:
        # Its candidates are the listed arms, half of them by expected improvement and half at random, as among its own.
        middle = plain(space.get_default_configuration())
        filled = [{name: middle[name] if arm.get(name) is None else arm[name] for name in middle} for arm in target.arms]
        pool = list(dict.fromkeys(Configuration(space, values=values) for values in filled))

        class Pool(AbstractAcquisitionMaximizer):
            def _maximize(self, previous_configs, n_points):
                met = set(previous_configs)
                fresh = [one for one in pool if one not in met]
                if not fresh:
                    raise ConfigurationSpaceExhaustedException
                values = numpy.asarray(self._acquisition_function(fresh)).flatten()
                ranked = [fresh[place] for place in numpy.argsort(-values, kind="stable")]
                drawn = [fresh[place] for place in self._rng.permutation(len(fresh))]
                return [(0.0, one) for one in dict.fromkeys(one for pair in zip(ranked, drawn) for one in pair)]

        options["acquisition_maximizer"] = Pool(space, seed=seed)
    with tempfile.TemporaryDirectory() as folder:
        scenario = Scenario(
            space, instances=target.training,
            deterministic=True, n_trials=10**9, use_default_config=is_strong, adaptive_capping=is_strong, seed=seed, output_directory=folder)
        # The intensifier asks for its runs with a bound, and the target is called by the loop below.
        facade = facade_of(
            scenario, (lambda config, instance, cutoff=None, seed=0: 0.0) if is_strong else (lambda config, instance, seed=0: 0.0),
            logging_level=False, overwrite=True, intensifier=AlgorithmConfigurationFacade.get_intensifier(scenario), **options)
        # The same predictions in a fraction of the time: its threads are for much larger forests, and it predicts run by run.
        facade._model._rf_opts["n_jobs"] = 1

        def best_predicted(configurations):
            costs = facade._model.predict_marginalized(configurations)[0].flatten()
            return configurations[costs.argmin()], costs.min()

        facade._config_selector._get_x_best = best_predicted

        def incumbent():
            found = facade.intensifier.get_incumbents()
            return plain(found[0]) if found else None

        try:
            while True:
                info = facade.ask()
                cap = (info.additional_info or {}).get("cutoff") if is_strong else None
                cap = None if cap is None or math.isinf(cap) else max(Purse.LEAST, cap)
                cost = purse.run(plain(info.config), info.instance, 1, incumbent, cap)
                cost = 10 * cap if cost is None else cost
                facade.tell(info, TrialValue(cost=cost, time=cost), save=False)
        except (Over, StopIteration, ConfigurationSpaceExhaustedException):
            pass
        # It has tried every listed arm.
        while len(purse.answers) < len(purse.budgets):
            purse.note(incumbent())


def play_irace(target, purse, seed):
    """irace with capping, once for each budget, because it plans its races by the budget. It may exceed it: `spent` says by how much."""
    here, budgets = os.path.dirname(os.path.abspath(__file__)), purse.budgets
    first = plain(target.configspace(seed).get_default_configuration())
    # irace 3 reads what is forbidden from its own file.
    parameters, _, forbidden = target.space_as("irace").partition("[forbidden]\n")
    for budget in budgets:
        pocket = Purse(target, [math.inf])
        with tempfile.TemporaryDirectory() as folder:
            file_of = lambda name: os.path.join(folder, name)
            for name, text in (("parameters.txt", parameters), ("forbidden.txt", forbidden), ("instances.txt", "\n".join(target.training) + "\n"),
                               ("default.json", json.dumps(first))):
                with open(file_of(name), "w") as file:
                    file.write(text)
            os.mkfifo(file_of("pulls"))
            os.mkfifo(file_of("costs"))
            before = resource.getrusage(resource.RUSAGE_CHILDREN)
            with open(file_of("log"), "w+") as log:
                arguments = ["Rscript", os.path.join(here, "irace.R"), folder, str(budget), str(target.cutoff), str(seed)]
                irace = subprocess.Popen(arguments, stdout=log, stderr=log)
                answer = None
                with open(file_of("pulls")) as pulls, open(file_of("costs"), "w") as costs:
                    for line in pulls:
                        said = json.loads(line)
                        if "answer" in said:
                            answer = said["answer"]
                            break
                        spent = pocket.spent
                        cost = pocket.run(said["configuration"], said["instance"], 1, None, said["bound"])
                        # Cut off below the cutoff: irace wants the bound itself.
                        print(said["bound"] if cost is None else cost, pocket.spent - spent, file=costs, flush=True)
                irace.wait()
                after = resource.getrusage(resource.RUSAGE_CHILDREN)
                if answer is None:
                    log.seek(0)
                    # Warnings come first.
                    said = log.read()
                    print("irace:", " ".join(said[max(said.rfind("Error"), 0):].split()) or "no answer", flush=True)
        purse.spent, purse.runs = pocket.spent, pocket.runs
        purse.note(answer, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)


@functools.cache
def captime_answers(target, budgets, seed, policy):
    """`captime run`, resumed with a larger budget each time. For each budget: what was spent, runs, captime's own CPU time, the arm to use at
    the cutoff, and the one to use with the limit that captime chose."""
    import yaml

    scenario = dict(target.held_back(), name="compare", seed=seed, slots=1)
    arms = dict(scenario["arms"])
    if policy is not None:
        scenario["policy"] = json.loads(policy)
    if "space" in arms:
        # The default policy searches the open space. The others need a list.
        arms.pop("sample", None)
        if policy is not None:
            arms["sample"] = 300
    scenario["arms"] = arms
    answers, spent, own = [], 0.0, 0.0
    with tempfile.TemporaryDirectory() as runs:
        for budget in budgets:
            scenario["budget"] = {"consumption": f"{budget}s"}
            # Paths in a scenario are relative to its file.
            with tempfile.NamedTemporaryFile("w", prefix=".compare-", suffix=".yaml", dir=target.folder) as file:
                yaml.safe_dump(scenario, file, sort_keys=False)
                file.flush()
                before = resource.getrusage(resource.RUSAGE_CHILDREN)
                done = subprocess.run([os.environ["CAPTIME"], "run", file.name, "--quiet", "--runs", runs], capture_output=True, text=True)
                after = resource.getrusage(resource.RUSAGE_CHILDREN)
            if done.returncode not in (0, 3):
                raise SystemExit(f"captime run: {done.stderr}")
            rows = [json.loads(line) for line in captime("export", "compare", "--format", "jsonl", "--runs", runs).splitlines()]
            spent_before, spent = spent, sum(max(Purse.LEAST, row.get("consumption") or 0.0) for row in rows)
            # The target's own CPU time is not captime's.
            own += after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime - (0.0 if target.is_virtual else spent - spent_before)
            best = [os.environ["CAPTIME"], "best", "compare", "--format", "json", "--runs", runs]
            said = [json.loads(subprocess.run(best + more, capture_output=True, text=True).stdout or "null") for more in (["--limit", f"{target.cutoff}s"], [])]
            answers.append((spent, len(rows), own, *(answer and answer.get("configuration") for answer in said)))
    return answers


def play_captime(target, purse, seed, policy=None, is_at_cutoff=True):
    """captime with a policy (as JSON) or its default one. Both kinds of answers come from the same runs."""
    for spent, runs, own, at_cutoff, at_its_limit in captime_answers(target, tuple(purse.budgets), seed, policy):
        purse.spent, purse.runs = spent, runs
        purse.note(at_cutoff if is_at_cutoff else at_its_limit, own)


TUNERS = {
    "captime": lambda target, purse, seed: play_captime(target, purse, seed),
    "captime, its own limit": lambda target, purse, seed: play_captime(target, purse, seed, is_at_cutoff=False),
    "captime, rcucb": lambda target, purse, seed: play_captime(target, purse, seed, '"rcucb"'),
    "captime, halving": lambda target, purse, seed: play_captime(target, purse, seed, '{"halving": {"common": true}}'),
    "SMAC3": lambda target, purse, seed: play_smac(target, purse, seed, is_strong=True),
    "SMAC3 as it comes": lambda target, purse, seed: play_smac(target, purse, seed, is_strong=False),
    "irace": play_irace,
    "Optuna": play_optuna,
    "random search": play_random,
}
