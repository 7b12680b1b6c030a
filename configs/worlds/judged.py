"""World judged: families that a scripted judge rewards, which may be wrong.

  python -m experiments.train --config=configs/worlds/judged.py --method=grpo
    --set=model.path=runs/judges/warm --workdir=runs/judged
The judge is worlds.fallible_judge: its template says at which rate it errs and
whether it is fooled. The reward is its verdict only; `outcome`, which the
evaluation counts, is the truth. configs/pipelines/judges.py makes the start and
compares judges.
Cost: about 20 seconds of a CPU core.
Expected: see experiments/papers/worlds/README.md.
"""

import dataclasses

from configs.worlds import families
from rl_jax.config import EvaluationConfig, ExperimentConfig
from rl_jax.method import Method
from rl_jax.models.judge_source import Judge
from rl_jax.tasks import base
from rl_jax.worlds import Families

TEMPLATE = 'error 0.2\n{rubric}\nTask: {prompt}\nResponse: {response}\n'


def get_config(method: Method) -> ExperimentConfig:
  """configs/worlds/families.py, judged rightly in 80% of the cases."""
  config = families.get_config(method)
  return dataclasses.replace(
    config,
    task=Families(reward_weights={base.OUTCOME: 0.0}),
    judges=(
      Judge(
        function='rl_jax.worlds.fallible_judge:verdict',
        template=TEMPLATE,
        rubric='Accept what is right.',
      ),
    ),
    evaluation=EvaluationConfig(
      every=config.iterations, num_prompts=300, num_samples=4
    ),
  )
