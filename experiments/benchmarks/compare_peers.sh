#!/bin/sh
# Times rl_jax beside TRL and Tunix on one machine, in turn, and prints ratios.
#
#   BENCH=DIR TRL=VENV/bin/python TUNIX=VENV/bin/python \
#     sh experiments/benchmarks/compare_peers.sh
#
# BENCH holds bench_trl.py and bench_tunix.py, which print one JSON line each;
# every peer has its own environment. Peers without an interpreter are left out.
# All systems run in turn for ROUNDS (2) rounds, so that other load affects all of
# them. OUT keeps the lines. Results are valid only if nothing else uses a core.
# All systems use huge pages for large buffers where they are available.
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
