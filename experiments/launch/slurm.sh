#!/bin/bash
# A run on GPU nodes of a SLURM cluster, one process per GPU:
#
#   sbatch --nodes=2 experiments/launch/slurm.sh --config=configs/NAME.py
#     --method=grpo --set=mesh.fsdp=16 --workdir=/shared/runs/NAME
#
# Submit it from the repository, with .venv made by `make install
# EXTRAS=cuda13`. JAX reads the addresses from SLURM. All nodes must see the
# work directory; the mesh has as many devices as the job has GPUs.
#SBATCH --job-name=rl_jax
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=8
#SBATCH --gpus-per-node=8
#SBATCH --cpus-per-task=8
#SBATCH --time=24:00:00
#SBATCH --signal=TERM@300
#SBATCH --requeue
#SBATCH --open-mode=append
#SBATCH --output=%x-%j.log
set -euo pipefail

case "${1:-}" in
  --help | -h)
    sed -n '2,/^[^#]/s/^#\( \|$\)//p' "$0"
    exit 0
    ;;
esac

# SIGTERM comes 300 seconds before the time limit: all processes save after
# their iteration and exit with 143, and the job is requeued. Slurm has ended a
# job when it starts it again, so locks of other hosts need not be asked for.
status=0
srun --kill-on-bad-exit=1 --label .venv/bin/python -m experiments.train \
  --distributed --take_over "$@" || status=$?
if [ "$status" -eq 143 ]; then
  scontrol requeue "$SLURM_JOB_ID"
fi
exit "$status"
