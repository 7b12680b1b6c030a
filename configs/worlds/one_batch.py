"""World one_batch: problems, comparisons and judged problems in one batch.

  python -m experiments.train --config=configs/worlds/one_batch.py --method=grpo
    --set=model.path=runs/urpo/warm --workdir=runs/one_batch
The parts of the mixture: `sums`, three families whose answers are verified;
`pairs`, which of two answers is right, of all families; `open`, the other three
families, whose only reward is how often the policy itself, asked as in `pairs`,
prefers a response to the others of its group. configs/pipelines/urpo.py makes
the start and compares judges.
Cost: about a minute of a CPU core.
Expected: see experiments/papers/worlds/README.md.
"""

import dataclasses

from configs.worlds import families
from rl_jax.config import EvaluationConfig, ExperimentConfig
from rl_jax.method import Method
from rl_jax.models.judge_source import Judge
from rl_jax.tasks import Mixture, MixturePart, base
from rl_jax.worlds import Families, RankedFamilies, ranked_families


def get_config(method: Method) -> ExperimentConfig:
  """36 prompts x 8 samples, 12 prompts of each kind."""
  config = families.get_config(method)
  parts = (
    MixturePart(name='sums', task=Families(families='cri')),
    MixturePart(name='pairs', task=RankedFamilies()),
    MixturePart(
      name='open',
      task=Families(families='sdm', reward_weights={base.OUTCOME: 0.0}),
    ),
  )
  return dataclasses.replace(
    config,
    task=Mixture(parts),
    judges=(
      Judge(
        template=ranked_families.TEMPLATE,
        labels=ranked_families.LABELS,
        values=(1.0, 0.0),
        parts=('open',),
        max_tokens=40,
      ),
    ),
    rollout=dataclasses.replace(
      config.rollout, num_prompts=36, max_prompt_tokens=28
    ),
    evaluation=EvaluationConfig(
      every=config.iterations, num_prompts=600, num_samples=2
    ),
  )
