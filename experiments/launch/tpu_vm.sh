#!/bin/bash
# A run on all hosts of a Cloud TPU slice; its output is printed here:
#
#   TPU=my-slice ZONE=us-central2-b experiments/launch/tpu_vm.sh
#     --config=configs/NAME.py --method=grpo --set=mesh.fsdp=32
#     --workdir=/mnt/shared/runs/NAME
#
# Every host has the repository in ~/rl_jax, with .venv made by `make install
# EXTRAS=tpu`, and the same disk (Filestore, gcsfuse) under the work
# directory. JAX asks the metadata server for the addresses. The same command
# again continues the run.
set -euo pipefail

case "${1:-}" in
  --help | -h)
    sed -n '2,/^[^#]/s/^#\( \|$\)//p' "$0"
    exit 0
    ;;
esac

: "${TPU:?name of the TPU slice}" "${ZONE:?its zone}"
arguments=$(printf ' %q' "$@")
exec gcloud compute tpus tpu-vm ssh "$TPU" --zone="$ZONE" --worker=all \
  --command="cd ~/rl_jax && exec .venv/bin/python -m experiments.train \
--distributed$arguments"
