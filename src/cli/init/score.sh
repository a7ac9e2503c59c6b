#!/bin/sh
# Stands for a program of yours: the more effort, the smaller the error and the longer it takes.
# Usage: score.sh EFFORT careful|hasty SEED
effort=$1 mode=$2 seed=$3

# A number from 0 to 99 that depends on the seed.
luck=$((seed % 9973 * 37 % 100))

case $mode in
careful) pause=$((effort * 30 + luck)) error=$((500 / effort + luck)) ;;
*) pause=$((effort * 15 + luck / 2)) error=$((600 / effort + 2 * luck)) ;;
esac

sleep "0.$(printf %03d "$pause")"
echo "error=0.$(printf %03d "$error")"
