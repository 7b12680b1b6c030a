"""Methods of the main world: changes of their files, and what papers claim."""

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
DAPO = NO_FILTER | {
  'method.shaping.OverlongPenalty.max_tokens': 34,
  'method.shaping.OverlongPenalty.buffer_tokens': 7,
}
THOUGHT = {'method.credit.EntropyShaping.span': 'think'}


@dataclasses.dataclass(frozen=True)
class Claim:
  """What the paper says against GRPO, in one line.

  metric: of `tables.METRICS`, on which it is judged. sign: of the difference;
    0: not worse.
  """

  text: str
  metric: str = 'sampled'
  sign: int = 1


@dataclasses.dataclass(frozen=True)
class Trial:
  """A method in the main world.

  family: of mechanisms. rate: the best on the seeds for tuning; a test compares
    it with the committed runs. changes: what differs from the method's file.
  """

  family: str
  claim: Claim
  rate: float = 1.5e-4
  changes: dict[str, Any] = dataclasses.field(default_factory=dict)


_BETTER = Claim('higher accuracy')
TRIALS = {
  'grpo': Trial('baseline', Claim('', sign=0)),
  'reinforce': Trial('estimator', Claim('lower without a baseline', sign=-1)),
  'gspo': Trial('sequence ratio', _BETTER),
  'topr': Trial('clip', Claim('higher where samples are stale')),
  'cispo': Trial('clip', _BETTER),
  'kl_cov': Trial('entropy', Claim('keeps entropy', 'entropy'), changes=KL_COV),
  'ppo': Trial('critic', Claim("lower, by GRPO's paper", sign=-1)),
  'clip_cov': Trial(
    'entropy', Claim('keeps entropy', 'entropy'), changes=CLIP_COV
  ),
  'rloo': Trial('estimator', Claim('not worse without clip and std', sign=0)),
  'dr_grpo': Trial(
    'estimator', Claim('shorter responses', 'length', -1), changes={LENGTH: 34}
  ),
  'disco': Trial('discrimination', _BETTER),
  'pass_at_k_grpo': Trial('pass@k', Claim('higher pass@k', 'pass@4')),
  'nft': Trial('discrimination', _BETTER, changes=NFT),
  'dppo_tv': Trial('clip', _BETTER),
}
