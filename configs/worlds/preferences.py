"""Rule-made pairs of 2-digit arithmetic: every preference method on data.

A pair is the right answer and the same with one wrong digit. Groups of kto have
a third row, for its reference point. Your own file, in one of TRL's forms:
  python -m experiments.train --config=configs/worlds/preferences.py
    --method=dpo
    --set="task=PreferenceRows(path='pairs.jsonl', num_validation=100)"
    --set=model.path=models/smollm2 --set=rollout.max_prompt_tokens=256
    --set=rollout.max_response_tokens=256 --set=optimizer.learning_rate=1e-6
    --workdir=runs/dpo
Its last 100 rows are held out for the evaluation, which needs some; with
--set=evaluation.every=0 there is none. rollout.group_size is the number of
responses of a row, for kto one more, for sft and f_sft 1: the first response of
a row, of pairs the chosen one.
Command: python -m experiments.train --config=configs/worlds/preferences.py
  --method=cpo --workdir=runs/cpo
Losses that do not raise the likelihood of chosen responses teach an untrained
model no answers; warm it up on right responses only:
  python -m experiments.train --config=configs/worlds/preferences.py
    --method=sft --set=task.form=right --set=rollout.group_size=1
    --workdir=runs/warm
  python -m experiments.train --config=configs/worlds/preferences.py
    --method=dpo --set=model.path=runs/warm --set=optimizer.learning_rate=1e-4
    --workdir=runs/dpo
Cost: about 20 seconds on 2 CPU cores.
Expected: cpo preference/accuracy 0.83 and greedy accuracy 0.11 with seed 0.
After the warm start (greedy accuracy 0.17) dpo ends with preference/accuracy
0.91 and greedy accuracy 0.13, simpo with 0.97 and 0.18: wrong digits become
less likely, the right answer hardly more. 44 methods from that start:
experiments/papers/preferences/README.md.
"""

from rl_jax.config import EvaluationConfig, ExperimentConfig
from rl_jax.data.recorded_checks import reads_mismatched
from rl_jax.learning.optimizers import OptimizerConfig
from rl_jax.method import Method
from rl_jax.models import presets
from rl_jax.models.source import ModelSource
from rl_jax.rollouts.collect import RolloutConfig
from rl_jax.tasks import RulePairs
from rl_jax.worlds import Arithmetic


def get_config(method: Method) -> ExperimentConfig:
  """64 pairs an iteration; KTO's groups have the row of its baseline, too."""
  return ExperimentConfig(
    iterations=300,
    task=RulePairs(Arithmetic(digits=2, signed=False, reverse=True)),
    method=method,
    model=ModelSource(
      config=presets.small(num_heads=4, head_size=16),
      value_head=method.reads_values,
      num_values=method.num_values,
    ),
    rollout=RolloutConfig(
      num_prompts=64,
      group_size=2 + reads_mismatched(method),
      max_prompt_tokens=6,
      max_response_tokens=5,
      recorded_prompts=64,
    ),
    optimizer=OptimizerConfig(learning_rate=1e-3),
    evaluation=EvaluationConfig(every=50, num_prompts=256),
  )
