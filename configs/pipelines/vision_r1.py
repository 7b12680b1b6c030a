"""Vision-R1: thresholds of overlap that harden on the way, or stay.

The policy learns to name the boxes of a letter for 800 steps, then from 60
iterations of GRPO on precision and recall: with the thresholds of the first
stage throughout, of the second, or of the second from the 30th on.
Command: python -m experiments.pipeline --pipeline=vision_r1
  --workdir=runs/vision_r1
Cost: about four minutes of a CPU core.
Claim: the share of samples in which all boxes are exact is higher when the
  thresholds harden than when they stay those of the first stage.
Expected: see experiments/papers/worlds/README.md.
Source: "Vision-R1: Evolving Human-Free Alignment in Large Vision-Language
  Models via Vision-Guided Reinforcement Learning"; the switch is at half of
  the run, as there.
"""

from experiments.pipelines import starts
from experiments.pipelines.stages import Stage

_CONFIG = ('--config=configs/worlds/many_boxes.py', '--workdir={out}')
SWITCHES = {'first_stage': 1000, 'second_stage': 0, 'hardening': 30}


def get_stages() -> tuple[Stage, ...]:
  """A start, and a policy for each switch."""
  warm = starts.warm(_CONFIG, steps=800)
  trained = (
    Stage(
      name=name,
      flags=(
        *(*_CONFIG, '--method=vision_r1@several', '--set=model.path={warm}'),
        f'--set=method.shaping.0.switch={rollouts}',
      ),
    )
    for name, rollouts in SWITCHES.items()
  )
  return (warm, *trained)
