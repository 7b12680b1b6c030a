"""Sem-DPO: how steeply pairs count less whose chosen response has drifted.

A policy learns from 150 steps of supervised training on rules that reorder
digits, then 60 iterations of Sem-DPO on 2,000 pairs of a right answer and one
with a wrong digit. In 30% of the pairs the chosen response answers another
prompt, which its distance from the prompt shows. Pairs are weighted with
exp(-decay distance), decay 0 (DPO), 1, 2, 5 or 10.
Command: python -m experiments.pipeline --pipeline=sem_dpo
  --workdir=runs/sem_dpo
Cost: about three minutes of a CPU core.
Claims: accuracy is higher with decay 2 than with 0, and with 10 than with 2.
Expected: see experiments/papers/worlds/README.md.
Source: "Sem-DPO: Mitigating Semantic Inconsistency in Preference Optimization
  for Prompt Engineering", 2025, reconstructed. There distances are of
  embeddings; here of digits.
"""

from experiments.pipelines import family_stages
from experiments.pipelines.stages import Stage

DECAYS = {'dpo': 0.0, 'one': 1.0, 'two': 2.0, 'five': 5.0, 'ten': 10.0}
_FAMILIES = "families='crsd'"
ITERATIONS = 60


def get_stages() -> tuple[Stage, ...]:
  """A start, pairs, and a policy for each decay."""
  warm = family_stages.own_rows(
    'warm', 'untrained', 150, "--set=task.families='crsd'"
  )
  trained = (
    Stage(
      name=name,
      flags=(
        *(family_stages.CONFIG, '--workdir={out}', '--method=sem_dpo'),
        *('--set=model.path={warm}', f'--set=iterations={ITERATIONS}'),
        "--set=task=PreferenceRows(path='{pool}.jsonl')",
        *('--set=rollout.recorded_prompts=32', '--set=rollout.group_size=2'),
        f'--set=method.losses.PairLoss.weight.decay={decay}',
        *family_stages.evaluated(ITERATIONS, _FAMILIES),
      ),
    )
    for name, decay in DECAYS.items()
  )
  return (
    family_stages.UNTRAINED,
    warm,
    family_stages.pool('--drift=0.3', "--set=task.families='crsd'"),
    *trained,
  )
