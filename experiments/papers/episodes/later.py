"""Worlds and claims that the first measurements asked for.

Those that begin with a policy read it from runs/walks (`python -m
experiments.pipeline --pipeline=walks --workdir=runs/walks`) or runs/callers,
whose command is in README.md.
"""

from collections.abc import Iterable
from typing import Any

from experiments.papers.episodes.cases import (
  CALLS,
  GRID,
  MAZE,
  NEAR_BEST,
  OUTCOME,
  PLANNED,
  RIGHT,
  WEIGHTS,
  Claim,
  World,
)

# Tokens of a turn with the one that ends it: 'u' has none, 'up', 'go up'.
WORDS = {'letter': 1, 'word': 6, 'phrase': 14}
REWARD = 'mean/mean'  # key, door and goal
ALPHAS = (0.0, 0.1, 0.2, 0.4, 0.8)
# Neither PPO's KL nor POAD's entropy bonus: what differs is where gamma acts.
_PER_TOKEN = {
  'method.credit.GAE.gamma': 0.95,
  'method.value_target.gamma': 0.95,
  'method.shaping.KLInReward.coef': 0.0,
}


def words(
  name: str,
  tokens: int,
  methods: tuple[str, str] = ('ppo', 'poad'),
  **changes: Any,
) -> World:
  """PPO and POAD with actions of that many tokens."""
  common = {
    **GRID,
    'task.words': name,
    'model.path': f'runs/walks/{name}',
    'rollout.turns.max_turn_tokens': tokens,
    'rollout.max_response_tokens': 10 * (tokens + 4),
    'iterations': 40,
    **changes,
  }
  ppo, poad = methods
  own = {ppo: _PER_TOKEN, poad: {'method.losses.EntropyBonus.coef': 0.0}}
  return World('keydoor', methods, common, own)


# The key is a step away: five actions at least, twelve turns.
FAR = {
  **GRID,
  'task.seed': 298,
  'rollout.turns.max_turns': 12,
  'rollout.max_response_tokens': 60,
}
# With one turn a segment HiPER's actions have the next value only.
ONE_STEP = {
  **PLANNED,
  'task.subtasks': 3,
  'iterations': 200,
  'method.credit.TurnGAE.lam': 0.0,
}
# Returns of -2 in place of -40: ValueClip moves a value by 0.2 a rollout.
SCALED = {**GRID, WEIGHTS: "{'maze': 0.05}"}
# From a clone of recorded walks, some of which reach the goal.
_WALKED = {**PLANNED, 'model.path': 'runs/planned_walks'}
# HiPER loses at the rate of PLANNED what it was given.
_SLOW = {'optimizer.learning_rate': 3e-4, 'iterations': 120}
# As the authors': its early segments earn what the critic says of later ones.
_CRITIC = {'model.critic': 'own', 'optimizer.critic_multiplier': 10.0}
_WALKS = {'walks': {}, 'slow': _SLOW, 'critic': {**_SLOW, **_CRITIC}}
# The worlds of the first measurements, which begin with random words.
_FIRST = {'first': {}, 'first_slow': {'optimizer.learning_rate': 3e-4}}
WORLDS = {
  **{
    f'planned_{count}_{name}': World(
      'planned_keydoor',
      ('turn_ppo', 'hiper'),
      {**_WALKED, 'task.subtasks': count, **changes},
    )
    for name, changes in _WALKS.items()
    for count in (1, 3)
  },
  **{
    f'planned_{count}_{name}': World(
      'planned_keydoor',
      ('turn_ppo', 'hiper'),
      {
        **PLANNED,
        'task.subtasks': count,
        'iterations': iterations,
        **_CRITIC,
        **changes,
      },
    )
    for name, changes in _FIRST.items()
    for count, iterations in ((1, 60), (3, 200))
  },
  'planned_3_step': World('planned_keydoor', ('turn_ppo',), ONE_STEP),
  **{f'words_{name}': words(name, size) for name, size in WORDS.items()},
  # At the rate of the others phrases fall apart.
  **{
    f'slow_{name}': words(name, size, **{'optimizer.learning_rate': 1e-3})
    for name, size in WORDS.items()
  },
  'maze_start': World(
    'keydoor',
    ('turn_ppo', 'filtered_bc'),
    {**MAZE, 'model.path': 'runs/walks/solver'},
  ),
  'maze_scaled': World('keydoor', ('turn_ppo',), SCALED),
  'maze_start_scaled': World(
    'keydoor', ('turn_ppo',), {**SCALED, 'model.path': 'runs/walks/solver'}
  ),
  'dense_more': World(
    'keydoor', ('starpo', 'expert_iteration', 'turn_rloo'), GRID
  ),
  'far': World('keydoor', ('grpo', 'gigpo', 'salt'), FAR),
  **{
    f'priced_{alpha}': World(
      'priced_tools',
      ('router_r1',),
      {'method.shaping.CostReward.alpha': alpha},
    )
    for alpha in ALPHAS
  },
  'callers': World(
    'priced_tools', ('grpo', 'otc'), {'model.path': 'runs/callers'}
  ),
}


def _gaps(text: str, names: Iterable[str]) -> list[Claim]:
  """HiPER less flat GAE, with three sub-tasks against one."""
  return [
    Claim(
      'A214 HiPER',
      f'{text} grows with sub-tasks',
      (f'planned_3_{name}', 'hiper'),
      (f'planned_1_{name}', 'hiper'),
      OUTCOME,
      base='turn_ppo',
    )
    for name in names
  ]


CLAIMS = (
  *(
    Claim(
      'A214 HiPER',
      'from recorded walks above flat GAE',
      (f'planned_{count}_{name}', 'hiper'),
      (f'planned_{count}_{name}', 'turn_ppo'),
      metric,
    )
    for name in _WALKS
    for count in (1, 3)
    for metric in (OUTCOME, RIGHT)
  ),
  *_gaps('from recorded walks the gap to flat GAE', _WALKS),
  *(
    Claim(
      'A214 HiPER',
      'with the critic of the authors above flat GAE',
      (f'planned_{count}_{name}', 'hiper'),
      (f'planned_{count}_{name}', 'turn_ppo'),
      OUTCOME,
    )
    for name in _FIRST
    for count in (1, 3)
  ),
  *_gaps('with the critic of the authors the gap', _FIRST),
  Claim(
    'A214 HiPER',
    'above itself with value heads on the layers of the policy',
    ('planned_3_first', 'hiper'),
    ('planned_3', 'hiper'),
    OUTCOME,
  ),
  Claim(
    'A214 HiPER',
    'flat GAE is lower at lambda 0',
    ('planned_3_step', 'turn_ppo'),
    ('planned_3', 'turn_ppo'),
    OUTCOME,
    -1,
  ),
  *(
    Claim(
      'A126 POAD',
      'above PPO that discounts tokens',
      (f'{speed}_{name}', 'poad'),
      (f'{speed}_{name}', 'ppo'),
      metric,
    )
    for speed, metric in (('words', OUTCOME), ('slow', REWARD))
    for name in WORDS
  ),
  *(
    Claim(
      'A126 POAD',
      'the gap to PPO grows with the length of words',
      (f'{speed}_{name}', 'poad'),
      (f'{speed}_letter', 'poad'),
      metric,
      base='ppo',
    )
    for speed, metric in (('words', OUTCOME), ('slow', REWARD))
    for name in ('word', 'phrase')
  ),
  *(
    Claim(
      'M28',
      'from recorded walks PPO reaches 95% of the best return',
      ('maze_start', name),
      NEAR_BEST,
      'final/maze',
      0,
    )
    for name in ('turn_ppo', 'filtered_bc')
  ),
  Claim(
    'M28',
    'from recorded walks PPO above filtered BC',
    ('maze_start', 'turn_ppo'),
    ('maze_start', 'filtered_bc'),
    'final/maze',
  ),
  *(
    Claim('M28', text, (world, 'turn_ppo'), NEAR_BEST, 'final/maze', 0)
    for text, world in (
      ('with small rewards PPO reaches 95% of the best return', 'maze_scaled'),
      ('and so it does from recorded walks', 'maze_start_scaled'),
    )
  ),
  *(
    Claim(source, text, ('dense_more', name), ('dense', other), OUTCOME, sign)
    for source, text, name, other, sign in (
      ('StarPO', 'above PPO', 'starpo', 'ppo', 1),
      ('M97', 'expert iteration below GRPO', 'expert_iteration', 'grpo', -1),
      ('M29', 'RLOO of turns above RLOO', 'turn_rloo', 'rloo', 1),
    )
  ),
  *(
    Claim(source, 'above GRPO', ('far', name), ('far', 'grpo'), OUTCOME)
    for source, name in (('GiGPO', 'gigpo'), ('A199 SALT', 'salt'))
  ),
  *(
    Claim(
      'Router-R1',
      text,
      (f'priced_{alpha}', 'router_r1'),
      (f'priced_{ALPHAS[0]}', 'router_r1'),
      metric,
      sign,
    )
    for text, metric, sign in (
      ('cheaper than without cost', 'final/cost', -1),
      ('as right as without cost', RIGHT, 0),
    )
    for alpha in ALPHAS[1:]
  ),
  *(
    Claim('OTC', text, ('callers', 'otc'), ('callers', 'grpo'), metric, sign)
    for text, metric, sign in (
      ('fewer calls, from a start that always calls', CALLS, -1),
      ('as right, from a start that always calls', RIGHT, 0),
      ('more right answers a call', f'{RIGHT} per {CALLS}', 1),
    )
  ),
)
