"""Measures how often the best of n samples of a run beats that of another run.

python -m experiments.papers.preferences.best_of_wins --workdir=runs/infalign
  --reference=runs/reference --n=1,4

Reads the rewards in both rollouts.jsonl, of prompts that both have and samples
that could be judged; --last=1 for those of the last iteration of each. Runs
with optimizer.learning_rate=0.0 sample a policy as it is; the log has the first
guards.log_rollouts prompts of every iteration. A prompt counts if it has n
samples in both. --worst is for the worst of n.
"""

from collections.abc import Sequence
import json
import math

from absl import flags
import numpy as np

from experiments.flags import configuration
from experiments.pipelines.rows import judged, read


def chances(
  rewards: Sequence[float], n: int, worst: bool = False
) -> np.ndarray:
  """The chance of each sample to be the best of n that are drawn, [K].

  Drawn without replacement; of equal samples one later in the order counts, so
  sums over equal rewards are right. C(i - 1, n - 1) / C(K, n) for the i-th in
  rising order: no bias for new samples. worst: of the worst of n instead.

  Raises: ValueError if there are fewer than n samples.
  """
  K = len(rewards)
  if not 1 <= n <= K:
    raise ValueError(f'n = {n}, and a prompt has {K} samples')
  values = np.asarray(rewards, np.float64)
  order = np.argsort(-values if worst else values, kind='stable')
  found = np.empty(K)
  found[order] = [math.comb(i, n - 1) / math.comb(K, n) for i in range(K)]
  return found


def win_rate(
  own: Sequence[float], other: Sequence[float], n: int, worst: bool = False
) -> float:
  """P(best of n of own > best of n of other) + P(equal) / 2, of one prompt.

  Source: the inference-time win rate of "InfAlign: Inference-aware language
  model alignment"; worst=True is that of best-of-n jailbreaking.
  """
  sign = np.sign(np.subtract.outer(own, other))
  weights = chances(own, n, worst), chances(other, n, worst)
  return float(0.5 * (1 + weights[0] @ sign @ weights[1]))


_WORKDIR = flags.DEFINE_string(
  'workdir', None, 'Work directory of `train`.', required=True
)
_REFERENCE = flags.DEFINE_string(
  'reference', None, 'That of the policy it is compared with.', required=True
)
_NUMBERS = flags.DEFINE_list('n', ['1', '4'], 'Samples of a choice.')
_LAST = flags.DEFINE_integer(
  'last', None, 'Only so many last iterations of a run.', lower_bound=1
)
_WORST = flags.DEFINE_bool('worst', False, 'The worst of n, not the best.')


def main(argv):
  """Prints {n: {win_rate, prompts}} as JSON."""
  del argv
  own, other = (rewards(x) for x in (_WORKDIR.value, _REFERENCE.value))
  result = {}
  for text in _NUMBERS.value or ['']:
    if not text.isdecimal() or not int(text):
      raise ValueError(
        f'--n={",".join(_NUMBERS.value)}: {text!r} is not a count'
      )
    n = int(text)
    prompts = [x for x in own if min(len(own[x]), len(other.get(x, ()))) >= n]
    if not prompts:
      raise ValueError(f'--n={n}: no prompt has {n} samples in both runs')
    wins = [win_rate(own[x], other[x], n, _WORST.value) for x in prompts]
    result[text] = {'win_rate': float(np.mean(wins)), 'prompts': len(wins)}
  print(json.dumps(result, indent=2))


def rewards(workdir: str) -> dict[str, list[float]]:
  """Rewards of the judged samples by prompt."""
  found: dict[str, list[float]] = {}
  for line in read(workdir, _LAST.value):
    if judged(line):
      found.setdefault(line['prompt'], []).append(line['reward'])
  return found


if __name__ == '__main__':
  configuration.run(main)
