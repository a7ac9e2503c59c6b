"""Other tuners on recorded runs. Each plays with one seed until the budgets are spent, and returns its answer for each."""

import os
import random
import statistics
import subprocess
import tempfile

from replay import Over, Purse


def play_random(replay, budgets, seed):
    """Any arm on any training instance at the full cutoff; the arm with the best mean, if seen at least twice, else once."""
    purse, chance, seen = Purse(replay, budgets), random.Random(seed), {}

    def answer():
        often = {arm: costs for arm, costs in seen.items() if len(costs) > 1} or seen
        return min(often, key=lambda arm: (statistics.mean(often[arm]), arm), default=0)

    try:
        while True:
            arm = chance.randrange(replay.arms)
            is_solved, used = purse.run(arm, chance.randrange(replay.train), replay.cutoff, answer)
            seen.setdefault(arm, []).append(used if is_solved else 10 * replay.cutoff)
    except Over:
        return purse


def play_optuna(replay, budgets, seed):
    """TPE with the median pruner: a trial runs a configuration on the training instances, one after the other, and is judged by
    its mean PAR10 so far. Its configurations are replaced by the nearest recorded ones."""
    import optuna

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    purse = Purse(replay, budgets)
    instances = list(range(replay.train))
    random.Random(seed).shuffle(instances)
    study = optuna.create_study(
        sampler=optuna.samplers.TPESampler(seed=seed), pruner=optuna.pruners.MedianPruner(n_startup_trials=5, n_warmup_steps=2)
    )
    seen = {}

    def answer():
        # Of those that got furthest, the best.
        return min(seen, key=lambda arm: (-len(seen[arm]), statistics.mean(seen[arm])), default=0)

    def objective(trial):
        words = [trial.suggest_categorical(name, values) for name, values in zip(replay.names, replay.values)]
        arm = replay.nearest(words)
        costs = []
        for step, instance in enumerate(instances):
            is_solved, used = purse.run(arm, instance, replay.cutoff, answer)
            costs.append(used if is_solved else 10 * replay.cutoff)
            if len(costs) > len(seen.get(arm, [])):
                seen[arm] = list(costs)
            trial.report(statistics.mean(costs), step)
            if trial.should_prune():
                raise optuna.TrialPruned
        return statistics.mean(costs)

    try:
        study.optimize(objective)
    except Over:
        pass
    return purse


def play_smac(replay, budgets, seed):
    """SMAC3's facade for algorithm configuration, asked and told. Its candidates are the recorded configurations themselves, half of
    them by expected improvement and half at random, as it does by default; SMAC3 2.x has no capping, so runs go to the cutoff."""
    import logging

    import numpy
    from ConfigSpace import CategoricalHyperparameter, Configuration, ConfigurationSpace, OrdinalHyperparameter
    from smac import AlgorithmConfigurationFacade, Scenario
    from smac.acquisition.maximizer.abstract_acquisition_maximizer import AbstractAcquisitionMaximizer
    from smac.runhistory.dataclasses import TrialValue
    from smac.runhistory.enumerations import StatusType

    logging.disable(logging.CRITICAL)
    space = ConfigurationSpace(seed=seed)
    # It begins with the default: a random recorded configuration, different for each seed.
    first = replay.columns[random.Random(seed).randrange(replay.arms)]
    for name, values, is_ordered, default in zip(replay.names, replay.values, replay.is_ordered, first):
        kind = OrdinalHyperparameter if is_ordered and len(values) > 1 else CategoricalHyperparameter
        space.add(kind(name, values, default_value=default))
    pool = [Configuration(space, values=dict(zip(replay.names, column))) for column in replay.columns]
    number = {configuration: arm for arm, configuration in reversed(list(enumerate(pool)))}

    class Pool(AbstractAcquisitionMaximizer):
        def _maximize(self, previous_configs, n_points):
            met = set(previous_configs)
            fresh = [configuration for configuration in pool if configuration not in met]
            values = numpy.asarray(self._acquisition_function(fresh)).flatten()
            ranked = [fresh[place] for place in numpy.argsort(-values, kind="stable")]
            chance = list(self._rng.permutation(len(fresh)))
            mixed, used = [], set()
            for best, any in zip(ranked, chance):
                for configuration in (best, fresh[any]):
                    if configuration not in used:
                        used.add(configuration)
                        mixed.append((0.0, configuration))
            return mixed

    purse = Purse(replay, budgets)
    with tempfile.TemporaryDirectory() as folder:
        scenario = Scenario(
            space,
            instances=[str(instance) for instance in range(replay.train)],
            instance_features={str(instance): [instance] for instance in range(replay.train)},
            deterministic=True,
            n_trials=10**9,
            seed=seed,
            output_directory=folder,
        )
        facade = AlgorithmConfigurationFacade(
            scenario,
            lambda config, instance, seed=0: 0.0,
            acquisition_maximizer=Pool(space, seed=seed),
            random_design=AlgorithmConfigurationFacade.get_random_design(scenario, probability=1e-9),
            logging_level=False,
            overwrite=True,
        )

        def arm_of(configuration):
            # Only configurations that it draws at random, which is rare, are not recorded ones.
            if configuration in number:
                return number[configuration]
            return replay.nearest(configuration[name] for name in replay.names)

        def answer():
            incumbents = facade.intensifier.get_incumbents()
            return arm_of(incumbents[0]) if incumbents else 0

        try:
            while True:
                info = facade.ask()
                is_solved, used = purse.run(arm_of(info.config), int(info.instance), replay.cutoff, answer)
                cost = used if is_solved else 10 * replay.cutoff
                status = StatusType.SUCCESS
                facade.tell(info, TrialValue(cost=cost, time=used, status=status), save=False)
        except (Over, StopIteration):
            pass
        while len(purse.answers) < len(purse.budgets):
            purse.answers.append(answer())
    return purse


def play_irace(replay, budgets, seed):
    """irace with capping, once per budget, because it plans its races by the budget. It may overspend, so what it spent is reported."""
    purse = Purse(replay, budgets)
    purse.overspent = []
    here = os.path.dirname(os.path.abspath(__file__))
    with tempfile.TemporaryDirectory() as folder:
        with open(os.path.join(folder, "times.csv"), "w") as file:
            for row in replay.times[: replay.train]:
                file.write(",".join("Inf" if time is None else repr(time) for time in row) + "\n")
        with open(os.path.join(folder, "arms.csv"), "w") as file:
            file.write("\n".join(",".join(word(value) for value in column) for column in replay.columns) + "\n")
        with open(os.path.join(folder, "parameters.txt"), "w") as file:
            for place, values in enumerate(replay.values):
                kind = "o" if replay.is_ordered[place] else "c"
                file.write(f'p{place + 1} "" {kind} ({", ".join(word(value) for value in values)})\n')
        for budget in purse.budgets:
            arguments = [folder, str(budget), str(replay.cutoff), str(seed)]
            done = subprocess.run(["Rscript", os.path.join(here, "irace.R"), *arguments], capture_output=True, text=True)
            last = (done.stdout.strip().splitlines() or [""])[-1].split()
            if done.returncode == 0 and last[:1] == ["ANSWER"]:
                purse.answers.append(int(last[1]) - 1)
                purse.spent, purse.runs = float(last[2]), int(last[3])
                purse.overspent.append(float(last[2]) / budget)
            else:
                purse.answers.append(None)
                told = [line for line in done.stderr.splitlines() if "Error" in line]
                purse.why = (told or ["it gave no answer"])[0].removeprefix("Error: == irace == ")
    return purse


def word(value):
    return repr(value).replace(".", "_").replace("-", "m") if isinstance(value, float) else value


PEERS = {"random": play_random, "optuna": play_optuna, "smac": play_smac, "irace": play_irace}
