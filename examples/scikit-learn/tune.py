"""Tunes scikit-learn's gradient boosting and the CPU time a fit may take.

    pip install captime scikit-learn
    python3 tune.py                # five minutes; run it again to resume
    python3 tune.py --rounds 500   # or as many pulls as you like

captime chooses a configuration and a limit, and this script runs the fit under that limit. A thread cannot be stopped in the middle
of a fit, so each fit has its own process, and `run_limited` ends it to the millisecond.
"""

import argparse
import json
import os
import sys
import time
from pathlib import Path

from captime import Pull, Tuner, run_limited

HERE = Path(__file__).resolve().parent

parser = argparse.ArgumentParser()
parser.add_argument("--rounds", type=int, help="how many pulls, instead of five minutes")
parser.add_argument("--journal", default="runs/digits", help="the folder to record in and to resume from")
arguments = parser.parse_args()


def pull_once(tuner: Tuner, pull: Pull) -> str:
    """Runs one fit under its limit and tells captime what became of it."""
    run = run_limited(
        [sys.executable, HERE / "fit.py", json.dumps(pull.configuration), str(pull.id)],
        cpu=pull.limit,
        wall=300,
        memory="2GiB",
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )
    if run.cause == "cpu":
        tuner.tell(pull, censored=True)
        return "cut off"
    if not run.is_success:
        tuner.tell(pull, failed=True)
        return f"failed: {(run.stderr.strip() or run.cause).splitlines()[-1]}"
    accuracy = json.loads(run.stdout)["accuracy"]
    tuner.tell(pull, reward=accuracy, consumption=run.cpu_seconds)
    return f"accuracy {accuracy:.4f} after {run.cpu_seconds:.2f} s"


with Tuner(HERE / "scenario.yaml", journal=arguments.journal) as tuner:
    end, count = time.monotonic() + 300, 0
    while time.monotonic() < end if arguments.rounds is None else count < arguments.rounds:
        pull = tuner.ask()
        print(f"pull {pull.id}: arm {pull.arm}, limit {pull.limit:.2f} s: {pull_once(tuner, pull)}", flush=True)
        count += 1
    best = tuner.best()

if best is None:
    sys.exit("No fit ended within its limit. Let it run longer, or allow more time in scenario.yaml.")
low, high = best.interval
print(f"\nUse {best.configuration} with a limit of {best.limit:.2f} s of CPU time.")
print(f"Gain {best.gain:.4f} (95 % interval {low:.4f} to {high:.4f}), from {best.pulls} pulls.")
print(f"All pulls: captime report {arguments.journal}")
