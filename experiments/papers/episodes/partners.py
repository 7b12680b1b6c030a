"""Worlds and claims of partners, games, look-ups, forms and FrozenLake.

Partners and the first decomposer are those of
configs/worlds/partner_lessons.py, in runs/solver, runs/writer and
runs/decomposer; forms begin with runs/forms (`python -m experiments.pipeline
  --pipeline=forms --workdir=runs/forms`), and
`searched` with the clone of configs/worlds/searched.py. Kuhn poker and
FrozenLake need the extra 'games', `searched` needs 'search'; `excerpt` measures
how exploitable the last policies of Kuhn poker are.
"""

from typing import Any

from configs.pipelines import forms
from experiments.papers.episodes.cases import OUTCOME, RIGHT, Claim, World
from rl_jax.tasks import base

_STILL = {'optimizer.learning_rate': 0.0, 'iterations': 30}
_LESSONS = {'model.path': 'runs/decomposer'}
_HINTS = {'nlpo': {'method.logits.LaggedSupport.min_percent': 10}}
_KUHN = {'method.aggregation.length': 2.0}
_BONUS = {**_KUHN, 'add': ['method.losses=EntropyBonus(coef=0.2)']}
_REFLECTS, _SUMS, _DIRECTS = 'M26 Retroformer', 'M210 DaSLaM', 'M3 hints'
_REX, _WEB, _LLDS = 'A114 REX-RAG', 'M54 web forms', 'L218 LLDS'
# Ten times the rate; the hinge is all that LLDS adds to GRPO.
_FAST = {'optimizer.learning_rate': 1e-2}
_HINGE = {
  'llds': {
    'method.losses.KLPenalty.coef': 0.0,
    'method.aggregation': 'SeqMeanTokenMean()',
  }
}
_SEARCH = {'model.path': 'runs/searched_start'}
# Fields of training pages that are filled in already; held-out ones are empty.
_FILLED = {'task.filled': (0.8, 0.4, 0.0)}
_CURRICULA = {
  '': {},
  '_filled': _FILLED,
  '_selected': {**_FILLED, 'method.selector': 'BetaPosterior()'},
  # The pages are emptied as the policy succeeds, as in the paper.
  '_paced': {
    'task.filled': tuple(step / 10 for step in range(9, -1, -1)),
    'method.selector': "TargetDifficulty(levels=10,step=0.05,success='right')",
  },
}


def _form(fields: int, changes: dict[str, Any]) -> World:
  common = {
    **forms.sizes(fields),
    'model.path': f'runs/forms/clone_{fields}',
    'optimizer.learning_rate': 3e-4,
    'iterations': 80,
    'evaluation.every': 80,
  }
  return World('web_form', ('turn_rloo',), {**common, **changes})


WORLDS = {
  'reflections': World('reflections', ('retroformer',), {}),
  'reflections_still': World('reflections', ('retroformer',), _STILL),
  'reflections_constant': World(
    'reflections', ('retroformer',), {'task.actor': 'constant'}
  ),
  'two_step': World('two_step_sums', ('grpo',), _LESSONS),
  'two_step_still': World('two_step_sums', ('grpo',), {**_LESSONS, **_STILL}),
  'two_step_random': World('two_step_sums', ('grpo',), {}),
  'hints': World('hinted_keywords', ('nlpo',), {}, _HINTS),
  'hints_still': World('hinted_keywords', ('nlpo',), _STILL, _HINTS),
  'lookup': World('lookup', ('grpo@no_kl',), {}),
  'lookup_later': World('lookup', ('rex_rag',), {}),  # a later commit
  'lookup_fast': World('lookup', ('grpo@no_kl', 'llds'), _FAST, _HINGE),
  'searched': World('searched', ('grpo@no_kl',), _SEARCH),
  'searched_fast': World(
    'searched', ('grpo@no_kl', 'llds'), {**_SEARCH, **_FAST}, _HINGE
  ),
  'kuhn': World('kuhn', ('spiral',), _BONUS),
  'kuhn_no_baseline': World(
    'kuhn', ('spiral',), {**_BONUS, 'method.credit.RoleBaseline': None}
  ),
  'kuhn_no_bonus': World('kuhn', ('spiral',), _KUHN),
  # Only the policy's own rows are trained; the other player is a copy.
  **{
    f'kuhn_against_{name}': World(
      'kuhn',
      ('spiral',),
      {**_BONUS, 'method.rollout': f'Opponent(rule={rule})'},
    )
    for name, rule in (
      ('first', 'Frozen()'),
      ('lagged', 'CopyEvery(iterations=10)'),
    )
  },
  'frozen': World('frozen_lake', ('grpo', 'turn_ppo'), {}),
  **{
    f'forms_{fields}{name}': _form(fields, changes)
    for fields in forms.FIELDS
    for name, changes in _CURRICULA.items()
  },
}
# Of uniform legal actions; 0 in equilibrium.
UNIFORM, NASH = 0.917, 'nash_conv'
CLAIMS = (
  *(
    Claim(
      _REFLECTS,
      f'the goal by trial {trial} more often than before training',
      ('reflections', 'retroformer'),
      ('reflections_still', 'retroformer'),
      f'final/success_{trial}',
    )
    for trial in (2, 3, 4)
  ),
  Claim(
    _REFLECTS,
    'an actor that does not listen gives no reward',
    ('reflections_constant', 'retroformer'),
    0.0,
    'final/mean',
    0,
  ),
  Claim(
    _SUMS,
    'solver and decomposer above the solver',
    ('two_step', 'grpo'),
    1.0,
    f'{RIGHT} per final/alone',
  ),
  *(
    Claim(_SUMS, text, ('two_step', 'grpo'), (other, 'grpo'), RIGHT)
    for text, other in (
      ('above the decomposer after SFT', 'two_step_still'),
      ('above training from random weights', 'two_step_random'),
    )
  ),
  Claim(
    _DIRECTS,
    'more keywords than without a hint',
    ('hints', 'nlpo'),
    1.0,
    f'{RIGHT} per final/unhinted',
  ),
  Claim(
    _DIRECTS,
    'more keywords than before training',
    ('hints', 'nlpo'),
    ('hints_still', 'nlpo'),
    RIGHT,
  ),
  *(
    Claim(
      _REX, text, ('lookup_later', 'rex_rag'), ('lookup', 'grpo@no_kl'), metric
    )
    for text, metric in (
      ('more right answers', OUTCOME),
      ('more right answers in the end', RIGHT),
      ('recovers from more dead ends', 'mean/recovered per mean/dead_end'),
      ('in the end, too', 'final/recovered per final/dead_end'),
    )
  ),
  *(
    Claim(
      _LLDS, text, (f'{world}_fast', method), (other, 'grpo@no_kl'), RIGHT, sign
    )
    for world in ('lookup', 'searched')
    for text, method, other, sign in (
      ('GRPO collapses at a higher rate', 'grpo@no_kl', world, -1),
      ('above GRPO', 'llds', f'{world}_fast', 1),
    )
  ),
  Claim(
    'SPIRAL',
    'less exploitable than uniform actions',
    ('kuhn', 'spiral'),
    UNIFORM,
    NASH,
    -1,
  ),
  *(
    Claim('SPIRAL', text, ('kuhn', 'spiral'), (other, 'spiral'), NASH, -1)
    for text, other in (
      ('a baseline for each role helps', 'kuhn_no_baseline'),
      ('a bonus for entropy helps', 'kuhn_no_bonus'),
      ('self-play above a fixed opponent', 'kuhn_against_first'),
      ('self-play above a lagged opponent', 'kuhn_against_lagged'),
    )
  ),
  *(
    Claim(
      'M28',
      f'{name} reaches 95% of the best return',
      ('frozen', name),
      0.95,
      RIGHT,
      0,
    )
    for name in ('turn_ppo', 'grpo')
  ),
  *(
    Claim(
      _WEB,
      text,
      (f'forms_{fields}{one}', 'turn_rloo'),
      (f'forms_{fields}{other}', 'turn_rloo'),
      f'greedy/{base.OUTCOME}',
    )
    for fields in forms.FIELDS
    for text, one, other in (
      ('filled pages help on empty ones', '_filled', ''),
      ('a selector of filled pages helps', '_selected', ''),
      ('a selector above filled pages at equal shares', '_selected', '_filled'),
      ('pages that empty as the policy succeeds help', '_paced', ''),
    )
  ),
  Claim(
    _WEB,
    'fewer forms of four fields than of three',
    ('forms_4', 'turn_rloo'),
    ('forms_3', 'turn_rloo'),
    f'greedy/{base.OUTCOME}',
    -1,
  ),
)
