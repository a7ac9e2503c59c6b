"""Fits one model on one split and prints its accuracy: what a pull runs, in a process of its own.

    python3 fit.py '{"learning_rate": 0.1, "iterations": 100, "leaves": 31}' SEED
"""

import json
import sys

from sklearn.datasets import load_digits
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.model_selection import train_test_split

configuration, seed = json.loads(sys.argv[1]), int(sys.argv[2])
digits = load_digits()
split = train_test_split(digits.data, digits.target, train_size=0.7, random_state=seed)
train_rows, test_rows, train_labels, test_labels = split
model = HistGradientBoostingClassifier(
    learning_rate=configuration["learning_rate"],
    max_iter=configuration["iterations"],
    max_leaf_nodes=configuration["leaves"],
    random_state=seed,
)
model.fit(train_rows, train_labels)
print(json.dumps({"accuracy": model.score(test_rows, test_labels)}))
