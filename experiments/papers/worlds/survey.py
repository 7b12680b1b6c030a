"""Methods of the world `brief`: all at one rate, and what their papers claim.

A claim is against the method that the paper compares with, which stands in it,
else against GRPO; 'none' is no claim of the paper, and GRPO is what the method
is compared with.
"""

from experiments.papers.worlds import trials
from experiments.papers.worlds.trials import Claim

ITERATIONS = 12
RATE = 1.5e-4  # the best of three for all 18 methods that were tuned in stale

_NONE = Claim('none', sign=None)
CLAIMS = {
  'clip_higher': trials.KEEPS,
  'reinforce_plus_plus': Claim('not worse', sign=0),
  'gpg': trials.BETTER,
  'lite_ppo': trials.BETTER,
  'expert_iteration': _NONE,
  'reinforce_plus_plus_baseline': trials.BETTER,
  'opo': trials.BETTER,
}
# Changes of their files, as in `trials`.
_CHANGES = {
  'clip_higher': trials.NO_FILTER,
}
# The first three are judged in `stale`; here others are compared with them.
METHODS = {
  name: _CHANGES.get(name, {}) for name in ('grpo', 'ppo', 'gspo', *CLAIMS)
}
