#!/bin/sh
# Stands for any program that takes parameters, an instance and a seed, works for a while and prints a score.
# The larger the step the faster it is and the worse it scores; the instance and the seed add some noise.
set -eu
step=$1 method=$2 instance=$3 seed=$4
size=$(cat "$instance")
awk -v step="$step" -v method="$method" -v size="$size" -v seed="$seed" 'BEGIN {
    error = step / 10 + (method == "careful" ? 0.02 : 0.05) + (seed % 97) / 97 / 50
    work = int(size / step) * (method == "careful" ? 3 : 1)
    for (k = 0; k < work; k++) sum += sin(k)
    printf "error=%.4f\n", error
}'
