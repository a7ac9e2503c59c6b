"""One fit of scikit-learn, for scripts/compare-forests: CODED TEST_ROWS TREES MTRY NODE FRACTION THREADS SEED.

CODED is a CSV of numbers with the target first; the answer is a line of JSON.
"""

import json
import sys
import time

import numpy
from sklearn.ensemble import RandomForestRegressor

coded, test_rows, trees, mtry, node, fraction, threads, seed = sys.argv[1:]
table = numpy.loadtxt(coded, delimiter=",", skiprows=1)
is_test = numpy.zeros(len(table), dtype=bool)
is_test[numpy.loadtxt(test_rows, dtype=int) - 1] = True
train, test = table[~is_test], table[is_test]
forest = RandomForestRegressor(
    n_estimators=int(trees),
    max_features=int(mtry),
    min_samples_split=int(node) + 1,
    max_samples=float(fraction),
    n_jobs=int(threads),
    random_state=int(seed),
)
wall, cpu = time.perf_counter(), time.process_time()
forest.fit(train[:, 1:], train[:, 0])
wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
started = time.perf_counter()
predicted = forest.predict(test[:, 1:])
predicting = time.perf_counter() - started
print(
    json.dumps(
        {
            "rmse": float(numpy.sqrt(numpy.mean((predicted - test[:, 0]) ** 2))),
            "leaves": float(numpy.mean([tree.get_n_leaves() for tree in forest.estimators_])),
            "fit_seconds": wall,
            "fit_cpu_seconds": cpu,
            "predict_seconds": predicting,
        }
    )
)
