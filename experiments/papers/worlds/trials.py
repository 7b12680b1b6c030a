"""Methods of the comparisons: changes of their files, and what papers claim."""

import dataclasses
from typing import Any

RATE = 'optimizer.learning_rate'
# Dynamic sampling draws until enough groups differ: without it all methods draw
# equally many responses, and a group of equal rewards has no gradient anyway.
NO_FILTER = {'method.group_filter': 'null'}
CLIP_COV = NO_FILTER | {'method.weights.ClipCovDrop.fraction': 0.02}
KL_COV = NO_FILTER | {'method.losses.KLCov.fraction': 0.02}
LENGTH = 'method.aggregation.length'
NFT = NO_FILTER | {LENGTH: 34}


@dataclasses.dataclass(frozen=True)
class Claim:
  """A claim of a paper against GRPO, in one line.

  metric: of `tables.METRICS`, on which it is judged. sign: of the difference;
    0: not worse; None: the paper claims nothing of the kind. against: in worlds
    of `looped` another method than the baseline.
  """

  text: str
  metric: str = 'sampled'
  sign: int | None = 1
  against: str | None = None


@dataclasses.dataclass(frozen=True)
class Trial:
  """A method in a comparison.

  family: of mechanisms. rate: the best on the seeds for tuning; a test compares
    it with the committed runs. changes: what differs from the method's file.
    seeds: of the comparison; ten or five where a difference of three points is
    to be seen, three elsewhere.
  """

  family: str
  claim: Claim
  rate: float = 1.5e-4
  changes: dict[str, Any] = dataclasses.field(default_factory=dict)
  seeds: int = 3


BETTER = Claim('higher accuracy')
_BASELINE = Claim('', sign=0)
KEEPS = Claim('keeps entropy', 'entropy')
PASS = Claim('higher pass@k', 'pass@4')
LOWER = Claim('lower without a baseline', sign=-1)
SHORTER = Claim('shorter responses', 'length', -1)
STALE = {
  'grpo': Trial('baseline', _BASELINE, seeds=5),
  'reinforce': Trial('estimator', LOWER, seeds=5),
  'gspo': Trial('sequence ratio', BETTER, seeds=5),
  'topr': Trial('clip', Claim('higher where samples are stale'), seeds=5),
  'cispo': Trial('clip', BETTER),
  'kl_cov': Trial('entropy', KEEPS, changes=KL_COV),
  'ppo': Trial('critic', Claim("lower, by GRPO's paper", sign=-1), seeds=5),
  'clip_cov': Trial('entropy', KEEPS, changes=CLIP_COV),
  'rloo': Trial('estimator', Claim('not worse without clip and std', sign=0)),
  'dr_grpo': Trial('estimator', SHORTER, changes={LENGTH: 34}),
  'disco': Trial('discrimination', BETTER),
  'pass_at_k_grpo': Trial('pass@k', PASS, seeds=5),
  'nft': Trial('discrimination', BETTER, changes=NFT),
  'dppo_tv': Trial('clip', BETTER),
}
# In `long`, whose thoughts have 32 to 44 tokens; named before they ran.
_LONG = (
  *('grpo', 'reinforce', 'gspo', 'topr', 'cispo', 'kl_cov', 'ppo', 'clip_cov'),
  *('rloo', 'dr_grpo', 'pass_at_k_grpo', 'dppo_tv'),
)
_NONE = Claim('none', sign=None)
LONG = {
  **{name: dataclasses.replace(STALE[name], seeds=20) for name in _LONG},
  'pass_at_k_grpo': Trial('pass@k', PASS, rate=5e-5, seeds=20),
  'dr_grpo': Trial('estimator', SHORTER, changes={LENGTH: 46}, seeds=20),
  'grpo@token_mean': Trial('estimator', _NONE, seeds=20),
  'clip_higher': Trial('entropy', KEEPS, changes=NO_FILTER, seeds=20),
  'luspo': Trial('sequence ratio', BETTER, seeds=20),
  'vespo': Trial('sequence ratio', BETTER, seeds=20),
  'expert_iteration': Trial('right rows', _NONE, seeds=20),
  'filtered_bc': Trial('right rows', _NONE, rate=4.5e-4, seeds=20),
}
