#!/bin/sh
# Times rl_jax beside TRL and Tunix on one machine, in turn, and prints ratios.
#
#   BENCH=DIR TRL=VENV/bin/python TUNIX=VENV/bin/python sh experiments/benchmarks/compare_peers.sh
#
# BENCH holds bench_trl.py and bench_tunix.py, which print one JSON line each;
# every peer has an environment of its own. A peer that is not given is left out.
# ROUNDS (2) rounds are run, so that a slow minute hits everybody. OUT keeps the
# lines. Quote a run only if nothing else used a core. All of them get huge pages
# for large buffers, if the C library and the system have them.
set -eu
export GLIBC_TUNABLES="${GLIBC_TUNABLES-glibc.malloc.hugetlb=1}"
: "${BENCH:=.}" "${ROUNDS:=2}" "${REPEATS:=3}" "${PYTHON:=.venv/bin/python}"
: "${OUT:=$(mktemp -d)/peers.jsonl}" "${DEVICES:=$(nproc)}"

ours() {
  XLA_FLAGS="--xla_force_host_platform_device_count=$DEVICES" \
    "$PYTHON" -m experiments.benchmark --stage=step --repeats="$REPEATS" \
    ${MICROBATCHES:+--microbatches="$MICROBATCHES"} | tail -n 1 >> "$OUT"
}

peer() {  # interpreter, script
  if [ -n "$1" ]; then
    "$1" "$BENCH/$2" --threads 2 --repeats "$REPEATS" | tail -n 1 >> "$OUT"
  fi
}

for round in $(seq "$ROUNDS"); do
  echo "round $round of $ROUNDS, lines in $OUT" >&2
  ours
  peer "${TRL:-}" bench_trl.py
  peer "${TUNIX:-}" bench_tunix.py
done
"$PYTHON" -m experiments.benchmarks.peers --lines="$OUT"
