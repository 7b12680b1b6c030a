"""Methods against the errors of a learned reward, in the world proxy.

python -m experiments.train --config=configs/worlds/proxy.py
  --method=reward_model --set=task.num_train=3000 --set=iterations=300
  --set=seed=10 --workdir=runs/proxy_rm_10
python -m experiments.sweep --paper=proxy --workdir=runs/proxy
python -m experiments.papers.proxy.excerpt --workdir=runs/proxy
  --out=experiments/papers/proxy/results.jsonl
python -m experiments.papers.proxy.best_of_n
  --out=experiments/papers/proxy/best_of_n.jsonl
python -m experiments.table --paper=proxy --update

The first command also with seeds 11 to 17 and 30 to 46: every seed has its own
reward model, trained on the same 3,000 comparisons, each read five times. And
with --method=dpo, seeds 30 to 32, to runs/proxy_dpo_SEED, for RTO.
"""

from typing import Any

from experiments.papers.proxy import bounded, pairs
from experiments.sweeps.runs import Setting

NAIVE, RULE = 'GRPO', 'GRPO on the rule itself'
PPO, KL = 'PPO', 'GRPO, KL 0.1 in the reward'
CONSTRAINED = 'constrained RLHF'
ENSEMBLE = 'GRPO, mean of 3 models less half their variance'
# The learned reward where the rule's score is largest, mean of runs of GRPO
# with seeds 20 and 21, which are not in the table.
THRESHOLD = 0.55
_ONE = (('learned', 0, 1.0),)  # component, model after the seed's own, weight
_THREE = tuple((name, number, 0.0) for number, name in enumerate('abc'))
# Row of the table -> (reward models, changes).
ARMS: dict[str, tuple[tuple[tuple[str, int, float], ...], Setting]] = {
  NAIVE: (_ONE, {'method': 'grpo'}),
  PPO: (_ONE, {'method': 'ppo'}),
  ENSEMBLE: (
    _THREE,
    {
      'method': 'rm_ensemble',
      'method.shaping.Ensemble.components': ('a', 'b', 'c'),
    },
  ),
  CONSTRAINED: (
    _ONE,
    {
      'method': 'constrained_rlhf',
      'method.credit.Lagrangian.components': ('learned',),
      'method.value_target.components': ('learned',),
      'method.credit.Lagrangian.thresholds': (THRESHOLD,),
      'method.losses.ValueRegression.coefs': (0.5, 0.2),
      'model.num_values': 2,
    },
  ),
  'PAR, k 4': (
    _ONE,
    {'method': 'par', 'method.shaping.ReferenceSigmoid.k': 4.0},
  ),
  KL: (
    _ONE,
    {
      'method': 'grpo@no_kl',
      'add': ["method.shaping=KLInReward(coef=0.1, level='sequence')"],
    },
  ),
  RULE: (
    (),
    {'method': 'grpo', 'task.reward_weights': {'outcome': 1.0}},
  ),
}
# What a paper claims of the rule's score at the end, against NAIVE.
CLAIMS = {
  ENSEMBLE: 'less over-optimisation',
  CONSTRAINED: 'less over-optimisation',
  'PAR, k 4': 'less reward hacking',
}
# Named before the runs of FRESH, after those of SEEDS: under NAIVE the rule
# falls from the window PEAK, where its mean over SEEDS was the largest, to the
# end; and each of the others, and CONSTRAINED, of which too few seeds were run,
# has more of it at the end than NAIVE. Signed-rank tests, as one of SEEDS falls
# ten times as far as the others.
AGAIN = (NAIVE, PPO, ENSEMBLE, KL)
PEAK = 3  # iterations 31 to 40
# What is said of the rule's score at the end against PPO; None: nothing.
TOKEN_REWARDS = {'rto': 'better than PPO', 'r_to_q': None}
COMMON = {
  'config': 'proxy',
  'iterations': 240,
  'guards.log_rollouts': 0,
  'checkpoint.every': 10**9,
}
# Fresh: the number of comparisons was chosen with seeds 20 and 21.
SEEDS = range(10, 16)
FRESH = range(30, 40)
TOKEN_SEEDS = range(30, 33)


def models(which: tuple[tuple[str, int, float], ...], seed: int) -> list[str]:
  """Reward models to add: that of the seed, or it and the next ones."""
  return [
    f"reward_models=RewardModel(path='runs/proxy_rm_{seed + number}'"
    f', name={name!r}, weight={weight})'
    for name, number, weight in which
  ]


def _runs(seeds, arms):
  return [
    COMMON
    | changes
    | {'seed': seed, 'add': changes.get('add', []) + models(which, seed)}
    for seed in seeds
    for which, changes in (ARMS[name] for name in arms)
  ]


def _token_rewards():
  path = 'method.shaping.ImplicitReward.path'
  return [
    COMMON
    | {'method': method, 'seed': seed, path: f'runs/proxy_dpo_{seed}'}
    | {'add': models(_ONE, seed)}
    for seed in TOKEN_SEEDS
    for method in TOKEN_REWARDS
  ]


def get_sweep() -> list[Setting]:
  """Arms; those of AGAIN with fresh seeds; pairs; RTO; siblings of PAR."""
  return [
    *_runs(SEEDS, ARMS),
    *_runs(FRESH, AGAIN),
    *pairs.settings(lambda seed: models(_ONE, seed)),
    *_token_rewards(),
    *bounded.settings(COMMON, lambda seed: models(_ONE, seed)),
  ]


def table_of(line: dict[str, Any]) -> str:
  """Lines of one table are of one commit."""
  setting = line['setting']
  if setting['method'] in pairs.METHODS:
    return 'pairs'
  if setting['method'] in TOKEN_REWARDS:
    return 'token rewards'
  if setting['seed'] in bounded.SEEDS:
    return 'bounded rewards'
  return 'first' if setting['seed'] in SEEDS else 'again'


def arm(setting: Setting) -> str:
  """The row of the table to which a run belongs."""
  return next(
    name
    for name, (_, changes) in ARMS.items()
    if changes['method'] == setting['method']
    and (name == RULE) == ('task.reward_weights' in setting)
  )
