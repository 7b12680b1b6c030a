#!/bin/sh
# Decoding and updates on one GPU against its limits, beside transformers and
# torch: one JSON line a cell, and a table at the end. Ends within 10 minutes.
#
#   sh experiments/accelerator.sh
#
# PYTHON is the interpreter (default: .venv/bin/python if it is there, else
# python3). TORCH is an interpreter with torch and transformers (default:
# PYTHON); without them, or without CUDA, the lines give the reason. SECONDS_LEFT (570) bounds the
# whole run: what does not fit is recorded as not measured. OUT keeps the lines.
# DEVICE_CHECK=tiny runs every part with a tiny model on any machine.
# Targets: generate 30% (64 rows) and 50% (512) of the rate of a copy, update 35%
# of the rate of a matrix product.
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
default=.venv/bin/python
[ -x "$default" ] || default=python3
: "${PYTHON:=$default}" "${SECONDS_LEFT:=570}" "${DEVICE_CHECK:=}"
: "${OUT:=$(mktemp -d)/accelerator.jsonl}" "${TORCH:=$PYTHON}"
end=$(($(date +%s) + SECONDS_LEFT))
export CUDA_VISIBLE_DEVICES="${CUDA_VISIBLE_DEVICES:-0}"
# Programs of one cell serve the next run of the same cell.
export JAX_COMPILATION_CACHE_DIR="${JAX_COMPILATION_CACHE_DIR:-.jax_cache}"

cell() {  # interpreter, system, preset, stage, rows
  flags="--preset=$3 --stage=$4 --num_prompts=$(($5 / group)) $shape"
  flags="$flags --microbatches=$((($5 + microbatch - 1) / microbatch))"
  module=experiments.benchmark
  if [ "$2" = torch ]; then module=experiments.benchmarks.torch_peer; fi
  left=$((end - $(date +%s)))
  if [ "$left" -lt 5 ]; then
    status=124
  else
    status=0
    # shellcheck disable=SC2086
    timeout "$left" "$1" -m $module $flags --out="$OUT" 2>"$OUT.log" ||
      status=$?
  fi
  case $status in
    0) return ;;
    124) reason="no time left of $SECONDS_LEFT seconds" ;;
    *) reason="exit code $status: $(tail -n 1 "$OUT.log" | tr -d '"\\' |
      tr -cd '[:print:]' | cut -c 1-200)" ;;
  esac
  printf '{"system": "%s", "preset": "%s", "stage": "%s", "rows": %s, ' \
    "$2" "$3" "$4" "$5" >>"$OUT"
  printf '"skipped": "%s"}\n' "$reason" >>"$OUT"
}

both() {  # preset, stage, rows
  cell "$PYTHON" rl_jax "$@"
  cell "$TORCH" torch "$@"
}

"$PYTHON" -m experiments.benchmarks.agreement 2>"$OUT.log" ||
  tail -n 3 "$OUT.log"
if [ "$DEVICE_CHECK" = tiny ]; then
  group=4 microbatch=4
  shape='--group_size=4 --prompt_tokens=8 --new_tokens=8 --repeats=3'
  both tiny generate 8
  both tiny update 8
else
  group=8 microbatch=64
  shape='--group_size=8 --prompt_tokens=128 --new_tokens=128 --repeats=3'
  # The cells that have targets first.
  for rows in 64 512; do
    both qwen2p5_1p5b generate $rows
    both qwen2p5_1p5b update $rows
  done
  for rows in 64 512; do
    both qwen2p5_0p5b generate $rows
    both qwen2p5_0p5b update $rows
  done
fi
"$PYTHON" -m experiments.benchmarks.accelerator --lines="$OUT"
echo "lines in $OUT"
