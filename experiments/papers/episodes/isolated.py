"""Worlds in which methods are compared with themselves without their mechanism.

What they are compared with elsewhere differs in its KL and in scales, too.
"""

from experiments.papers.episodes.cases import GRID, OUTCOME, RIGHT, Claim, World
from experiments.papers.episodes.later import FAR

_NO_STEPS = {'method.credit.StepGroups.weight': 0.0}
_NO_KL = {'method.shaping.KLInReward.coef': 0.0}
WORLDS = {
  'dense_alone': World('keydoor', ('gigpo',), {**GRID, **_NO_STEPS}),
  'far_alone': World('keydoor', ('gigpo',), {**FAR, **_NO_STEPS}),
  'tools_alone': World('priced_tools', ('ppo',), _NO_KL),
}
CLAIMS = (
  *(
    Claim(
      'GiGPO',
      'above itself without steps',
      (world, 'gigpo'),
      (f'{world}_alone', 'gigpo'),
      OUTCOME,
    )
    for world in ('dense', 'far')
  ),
  *(
    Claim(
      source,
      text,
      ('tools', name),
      ('tools_alone', 'ppo'),
      metric,
      sign,
    )
    for source, text, name, metric, sign in (
      ('A55', 'more right than PPO without its KL', 'duration_ppo', RIGHT, 1),
      ('Router-R1', 'as right as PPO without its KL', 'router_r1', RIGHT, 0),
      (
        'Router-R1',
        'cheaper than PPO without its KL',
        'router_r1',
        'final/cost',
        -1,
      ),
    )
  ),
)
