"""Fits a reward that is linear in the task's components, to pairs of data.

python -m experiments.papers.preferences.fit_feature_reward
  --config=configs/worlds/preferences.py --reward=my_features.py:short
  --reward=my_features.py:polite --pairs=500

Features are functions as those of `train --reward`: of (example, response), a
number. Pairs are the chosen and the rejected response of each row. Prints
weights, accuracy on these pairs and on the last tenth, which is held out, and
the flags with which `train` uses the reward. A few hundred pairs are enough.
"""

import json

from absl import flags

from experiments.flags import configuration, fields
from experiments.rewards.feature_reward import accuracy, fit, gaps
from rl_jax.tasks import RewardFunctions, base

_CONFIG = flags.DEFINE_string(
  'config', None, 'Configuration with pairs, as train.', required=True
)
_REWARD = flags.DEFINE_multi_string(
  'reward', None, 'PATH.py:FUNCTION, a feature.', required=True
)
_SET = flags.DEFINE_multi_string('set', [], 'PATH=LITERAL, as train.')
_PAIRS = flags.DEFINE_integer('pairs', 1000, 'At most so many.', lower_bound=10)
_RIDGE = flags.DEFINE_float('ridge', 1e-3, 'Of the squares.', 0.0, 1e12)


def main(argv):
  """Reads, fits, prints."""
  del argv
  task = configuration.build(_CONFIG.value, 'dpo', fields.once(_SET.value)).task
  if task.num_recorded < 2:
    raise ValueError(
      f'--config={_CONFIG.value}: the data of {type(task).__name__} have one '
      'response to a prompt, and a reward is fitted to pairs'
    )
  for name in _REWARD.value:
    if _REWARD.value.count(name) > 1:
      raise ValueError(f'--reward={name} is given twice')
  rewarded = RewardFunctions(
    task=task, functions=dict.fromkeys(_REWARD.value, 1.0)
  )
  names = [name for name in rewarded.reward_weights if name != base.OUTCOME]
  gap_EF = gaps(rewarded, names, _PAIRS.value)
  held = max(1, len(gap_EF) // 10)
  w_F = fit(gap_EF[:-held], _RIDGE.value)
  pairs = zip(_REWARD.value, w_F.tolist(), strict=True)
  found = {
    'weights': dict(zip(names, w_F.tolist(), strict=True)),
    'accuracy': accuracy(gap_EF[:-held], w_F),
    'held_out_accuracy': accuracy(gap_EF[-held:], w_F),
    'pairs': len(gap_EF),
    'flags': ' '.join(f'--reward={name}={w:.6g}' for name, w in pairs),
  }
  print(json.dumps(found, indent=2))


if __name__ == '__main__':
  configuration.run(main)
