#!/bin/sh
# Decoding and updates on one GPU against its limits, beside transformers and
# torch: one JSON line a cell, and a table at the end. Ends within 10 minutes.
#
#   PYTHON=.venv/bin/python sh experiments/accelerator.sh
#
# TORCH is an interpreter with torch and transformers (default: PYTHON); without
# them, or without CUDA, the lines give the reason. SECONDS_LEFT (570) bounds the
# whole run: what does not fit is written down as not measured. OUT keeps the
# lines. DEVICE_CHECK=tiny runs every part with a tiny model on any machine.
# Wanted: generate 30% (64 rows) and 50% (512) of the time of the bytes needed,
# update 35% of the matrix rate.
set -eu
: "${PYTHON:=.venv/bin/python}" "${SECONDS_LEFT:=570}" "${DEVICE_CHECK:=}"
: "${OUT:=$(mktemp -d)/accelerator.jsonl}" "${TORCH:=$PYTHON}"
end=$(($(date +%s) + SECONDS_LEFT))
# Programs of one cell serve the next run of the same cell.
export JAX_COMPILATION_CACHE_DIR="${JAX_COMPILATION_CACHE_DIR:-.jax_cache}"

cell() {  # interpreter, system, preset, stage, rows
  flags="--preset=$3 --stage=$4 --rows=$5 --out=$OUT $extra"
  module=experiments.benchmarks.accelerator
  if [ "$2" = torch ]; then module=experiments.benchmarks.torch_peer; fi
  left=$((end - $(date +%s)))
  if [ "$left" -lt 5 ]; then
    status=124
  else
    status=0
    # shellcheck disable=SC2086
    timeout "$left" "$1" -m $module $flags 2>"$OUT.log" || status=$?
  fi
  case $status in
    0) return ;;
    124) reason="no time left of $SECONDS_LEFT seconds" ;;
    *) reason="exit code $status: $(tail -n 1 "$OUT.log" | cut -c 1-200)" ;;
  esac
  # shellcheck disable=SC2086
  "$PYTHON" -m experiments.benchmarks.accelerator $flags --system="$2" \
    --skipped="$reason"
}

both() {  # preset, stage, rows
  cell "$PYTHON" rl_jax "$@"
  cell "$TORCH" torch "$@"
}

if [ "$DEVICE_CHECK" = tiny ]; then
  extra='--group_size=4 --prompt_tokens=8 --new_tokens=8 --microbatch_rows=4'
  both tiny generate 8
  both tiny update 8
else
  extra=''
  # The cells that have bars first.
  for rows in 64 512; do
    both qwen2p5_1p5b generate $rows
    both qwen2p5_1p5b update $rows
  done
  for rows in 64 512; do
    both smollm2_135m generate $rows
    both smollm2_135m update $rows
  done
  for rows in 128 256; do
    both qwen2p5_1p5b generate $rows
    both smollm2_135m generate $rows
  done
fi
"$PYTHON" -m experiments.benchmarks.accelerator --table="$OUT"
echo "lines in $OUT"
