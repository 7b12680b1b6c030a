"""Methods of the world `brief`: one rate for all, and what papers claim.

The claim is against the baseline that the method's file names where that is the
paper's, else against GRPO. A claim of sign None is none of the paper: such a
method is compared with GRPO.
"""

from experiments.papers.worlds import trials
from experiments.papers.worlds.trials import Claim

ITERATIONS = 12
RATE = 1.5e-4  # the best of three for all 18 methods that were tuned in stale
NEIGHBOUR = 5e-5

_BETTER = Claim('higher accuracy')
_NONE = Claim('none', sign=None)
_OVER_PPO = Claim('higher than PPO', against='ppo')
_PASS = Claim('higher pass@k', 'pass@4')


def _over(method: str) -> Claim:
  return Claim(f'higher than {method}', against=method)


CLAIMS = {
  # Baselines.
  'ppo': Claim('lower', sign=-1),
  'gspo': _BETTER,
  'reinforce': trials.LOWER,
  'rloo': Claim('not worse without clip and std', sign=0),
  # Estimators.
  'dapo': _BETTER,
  'clip_higher': Claim('more entropy', 'entropy'),
  'reinforce_plus_plus': Claim('not worse', sign=0),
  'reinforce_plus_plus_baseline': _BETTER,
  'lite_ppo': _BETTER,
  'opo': _BETTER,
  'gpg': _BETTER,
  'lambda_grpo': _BETTER,
  'entropy_quantile': _over('clip_higher'),
  'mopps': _BETTER,
  'dual_clip_grpo': Claim('not worse', sign=0),
  'sapo': _BETTER,
  'gmpo': _BETTER,
  'ppo_max': _OVER_PPO,
  'seed_grpo': _BETTER,
  'adora': _BETTER,
  'rep_exp': _PASS,
  'riskpo': _BETTER,
  'thr': _BETTER,
  'nthr': _BETTER,
  'luspo': _over('gspo'),
  'vespo': _BETTER,
  'minpro': _BETTER,
  'dppo_kl': _BETTER,
  'dro': _NONE,
  'p3o_v1': _OVER_PPO,
  'p3o_v2': _OVER_PPO,
  'poad': _OVER_PPO,
  'nlpo': _OVER_PPO,
  'pf_ppo': _OVER_PPO,
  'expert_iteration': _NONE,
  'filtered_bc': _NONE,
  'online_dpo': _NONE,
  'iterative_dpo': _NONE,
  'irpo': _over('iterative_dpo'),
  'sppo': _over('iterative_dpo'),
  'spo': _NONE,
  'rebel': Claim('not worse than PPO', sign=0, against='ppo'),
  'copo': _BETTER,
  'empg': _BETTER,
  'egpo': _BETTER,
  'llds': _BETTER,
  'apo': _BETTER,
  'direct_advantage': _BETTER,
  'reg_grpo': _BETTER,
  'copg': Claim('not worse than RLOO', sign=0, against='rloo'),
  'adaptive_kl': _NONE,
  'b_coder': _OVER_PPO,
  'digi_q': Claim('higher than filtered cloning', against='filtered_bc'),
  'gdc': Claim('higher pass@k than REINFORCE', 'pass@4', against='reinforce'),
  'dno': _over('iterative_dpo'),
  'rso': _over('online_dpo'),
  'mapl': _over('online_dpo'),
  'w_dpo': _over('online_dpo'),
  'gepo': _NONE,
}
_NO_FILTER = ('clip_higher', 'entropy_quantile')
_OWN = {
  'adora': {'method.credit.LengthAdvantageScale.max_tokens': 34},
  'dapo': trials.NO_FILTER
  | {
    'method.shaping.OverlongPenalty.max_tokens': 34,
    'method.shaping.OverlongPenalty.buffer_tokens': 8,
  },
  'nlpo': {'method.logits.LaggedSupport.min_percent': 10},
  'riskpo': {'method.credit.BundleRisk.bundle': 4},
}
# Method -> changes of its file, as in `trials`.
METHODS = {
  'grpo': {},
  **{
    name: _OWN.get(name, trials.NO_FILTER if name in _NO_FILTER else {})
    for name in CLAIMS
  },
}
