"""Nash methods where preferences go in a circle.

An untrained policy learns for 300 iterations of six prompts from a judge of
pairs, whose taste has no best answer: by Nash-MD, by Nash-EMA (decay 0.95,
scaled to so few steps), by PairwiseRL against the anchor of the reference; and
by GRPO on a score of each response, its mean preference, which is what the
model of Bradley and Terry ranks by.
Command: python -m experiments.pipeline --pipeline=circular_taste
  --workdir=runs/circular_taste
Cost: about two minutes of a CPU core.
Claims: the shares of the three kinds over the last 50 iterations are less
  exploitable (worlds.circular_taste.exploitability) with Nash-MD and Nash-EMA
  than with the score, and than with the fixed anchor.
Expected: see experiments/papers/worlds/README.md.
Source: Munos et al., "Nash Learning from Human Feedback", 2023; "A Unified
  Pairwise Framework for RLHF", 2025. The game is ours.
"""

from experiments.pipelines.stages import Stage

_CONFIG = '--config=configs/worlds/circular_taste.py'
METHODS = {
  'nash_md': (_CONFIG, '--method=nash_md'),
  'nash_ema': (
    *(_CONFIG, '--method=nash_ema'),
    '--set=method.rollout.decay=0.95',
  ),
  'anchor': (
    *(_CONFIG, '--method=pairwise_rl', '--set=model.value_head=True'),
  ),
  'score': (f'{_CONFIG}@scores', '--method=grpo@no_kl'),
}


def get_stages() -> tuple[Stage, ...]:
  """A policy for each method."""
  return tuple(
    Stage(name=name, flags=(*flags, '--workdir={out}'))
    for name, flags in METHODS.items()
  )
