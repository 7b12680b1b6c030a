"""Losses on pairs in the world proxy, from data and from samples.

Offline they read the 3,000 comparisons of the reward model five times, 30,000
rows; online they sample 30,720 rows, which the reward model judges.
"""

from collections.abc import Callable
import dataclasses

from experiments.sweeps.runs import Setting


@dataclasses.dataclass(frozen=True)
class Claim:
  """A claim of a paper against DPO on data, named before the runs.

  metric: 'rule', its score at the end, or 'margin', log-probs of the chosen
  less the rejected response of a training pair, nats, less that at the start.
  sign: of the difference; 0: not worse.
  """

  text: str
  metric: str = 'rule'
  sign: int = 1


BASELINE = 'dpo'
OFFLINE: dict[str, Claim | None] = {
  BASELINE: None,
  'ipo': Claim('bounded margins', 'margin', -1),
  'simpo': Claim('better without a reference'),
  'kto': Claim('as good from labels only', sign=0),
  'rpo': Claim('less over-optimisation'),
}
ONLINE: dict[str, Claim | None] = {
  'online_dpo': Claim('better than offline'),
  'iterative_dpo': Claim('better than offline'),
  'xpo': Claim('better than offline'),
  'nash_md': Claim('better than offline'),
}
METHODS = (*OFFLINE, *ONLINE)
# And of DPO on data: the rule falls between the first reading of the pairs and
# the fifth, while the divergence grows.
FIRST_READING = 60  # iterations
AGAINST = ('xpo', 'nash_md')  # half of the rows are an opponent's
COMMON = {
  'config': 'proxy',
  'guards.log_rollouts': 0,
  'checkpoint.every': 10**9,
}
DATA = {
  'task.num_train': 3000,
  'iterations': 300,
  'checkpoint.weights_every': 30,
}
SAMPLES = {'iterations': 240, 'checkpoint.weights_every': 24}
SEEDS = range(33, 38)


def settings(models: Callable[[int], list[str]]) -> list[Setting]:
  """Seeds x methods; models: what --add says of a seed's reward model."""
  found: list[Setting] = []
  for seed in SEEDS:
    for name in OFFLINE:
      size = {'rollout.group_size': 3} if name == 'kto' else {}
      found.append(COMMON | DATA | size | {'method': name, 'seed': seed})
    for name in ONLINE:
      size = {'rollout.group_size': 4} if name in AGAINST else {}
      one = COMMON | SAMPLES | size | {'method': name, 'seed': seed}
      found.append(one | {'add': models(seed)})
  return found


def steps(setting: Setting) -> list[int]:
  """The iterations whose weights were kept."""
  every = setting['checkpoint.weights_every']
  return list(range(every, setting['iterations'] + 1, every))
