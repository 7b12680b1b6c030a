#!/bin/sh
# Times rl_jax beside TRL and Tunix on one machine, in turn, and prints ratios.
#
#   BENCH=DIR TRL=VENV/bin/python TUNIX=VENV/bin/python \
#     sh experiments/benchmarks/compare_peers.sh
#   TRL=VENV/bin/python STAGE=pairs sh experiments/benchmarks/compare_peers.sh
#
# STAGE is step, or pairs or turns, for which TRL is the only peer (trl_peer.py).
# BENCH holds bench_trl.py and bench_tunix.py, which print one JSON line each;
# every peer has its own environment. Peers without an interpreter are left out.
# All systems run in turn for ROUNDS (2) rounds, so that other load affects all of
# them, each with DEVICES threads (default: the cores that taskset leaves). OUT
# keeps the lines. Results are valid only if nothing else uses a core.
# All systems use huge pages for large buffers where they are available.
set -eu
case "${1:-}" in
  '') ;;
  *)
    sed -n '2,/^set -eu/s/^# \{0,1\}//p' "$0"
    [ "$1" = --help ] || [ "$1" = -h ] && exit 0
    echo "error: $1: settings are environment variables" >&2
    exit 2
    ;;
esac
export GLIBC_TUNABLES="${GLIBC_TUNABLES-glibc.malloc.hugetlb=1}"
: "${STAGE:=step}" "${BENCH:=.}" "${ROUNDS:=2}" "${REPEATS:=3}"
: "${PYTHON:=.venv/bin/python}"
: "${OUT:=$(mktemp -d)/peers.jsonl}" "${DEVICES:=$(nproc)}"

ours() {
  XLA_FLAGS="${XLA_FLAGS:-} --xla_force_host_platform_device_count=$DEVICES" \
    "$PYTHON" -m experiments.benchmark --stage="$STAGE" --repeats="$REPEATS" \
    ${MICROBATCHES:+--microbatches="$MICROBATCHES"} | tail -n 1 >> "$OUT"
}

peer() {  # interpreter, script with its arguments
  if [ -n "$1" ]; then
    "$@" --threads "$DEVICES" --repeats "$REPEATS" | tail -n 1 >> "$OUT"
  fi
}

for round in $(seq "$ROUNDS"); do
  echo "round $round of $ROUNDS, lines in $OUT" >&2
  ours
  if [ "$STAGE" = step ]; then
    peer "${TRL:-}" "$BENCH/bench_trl.py"
    peer "${TUNIX:-}" "$BENCH/bench_tunix.py"
  else
    peer "${TRL:-}" -m experiments.benchmarks.trl_peer --stage="$STAGE"
  fi
done
"$PYTHON" -m experiments.benchmarks.peers --lines="$OUT"
