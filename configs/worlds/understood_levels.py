"""World understood_levels: family_levels and questions that a judge rewards.

  python -m experiments.train --config=configs/worlds/understood_levels.py
    --method=craft_gui@understood --set=model.path=runs/craft_gui/warm_four
    --set=judges.0.path=runs/craft_gui/judge --workdir=runs/understood_levels
Level 3 asks which family leads from some digits to others. Its only reward is
what a judge says of the answer, P('1') of a model that was asked '3 1 4>4 1
3=r:'. configs/pipelines/craft_gui.py makes the start and the judge.
Cost: about half a minute of a CPU core.
Expected: see experiments/papers/worlds/README.md.
"""

import dataclasses

from configs.worlds import family_levels
from rl_jax.config import EvaluationConfig, ExperimentConfig
from rl_jax.method import Method
from rl_jax.models.judge_source import Judge
from rl_jax.tasks import EvaluationSet, Levels
from rl_jax.worlds import Families, ShownFamilies, shown_families

LEVEL = len(family_levels.DIGITS)  # of the questions


def get_config(method: Method) -> ExperimentConfig:
  """Prompt i is of level i mod 4."""
  config = family_levels.get_config(method)
  tasks = (
    *(Families(min_digits=x, max_digits=x) for x in family_levels.DIGITS),
    ShownFamilies(verified=False),
  )
  return dataclasses.replace(
    config,
    task=Levels(tasks, num_train=2400),
    judges=(
      Judge(
        template=shown_families.TEMPLATE,
        labels=shown_families.LABELS,
        parts=(Levels.name(LEVEL),),
        max_tokens=40,  # also of a response at its limit
      ),
    ),
    evaluation=EvaluationConfig(
      every=config.iterations,
      num_prompts=300,
      num_samples=2,
      split=None,
      sets=(
        EvaluationSet(
          name='actions', split='validation', task=Levels(tasks[:LEVEL])
        ),
        EvaluationSet(
          name='questions', split='validation', task=ShownFamilies()
        ),
      ),
    ),
  )
