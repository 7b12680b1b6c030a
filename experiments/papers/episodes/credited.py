"""Worlds in which PPO and POAD have the rewards of turns at their ends.

In the first measurements both had the whole return on the last token. Policies
that write words begin with those of runs/walks, as in later.py.
"""

from experiments.papers.episodes.cases import GRID, OUTCOME, Claim, World
from experiments.papers.episodes.later import REWARD, WORDS, words

_PPO, _POAD = 'ppo@turn_rewards', 'poad@turn_rewards'
_LENGTHS = {
  f'credited_{name}': words(
    name,
    size,
    methods=(_PPO, _POAD),
    **{'optimizer.learning_rate': 1e-3},
  )
  for name, size in WORDS.items()
}
WORLDS = {
  'credited': World('keydoor', (_PPO, _POAD), GRID),
  **_LENGTHS,
}
_OWN = ('credited', _PPO)
CLAIMS = (
  *(
    Claim('M29', f'with rewards of turns {text}', _OWN, other, OUTCOME)
    for text, other in (
      ('PPO above RLOO', ('dense', 'rloo')),
      ('PPO above GRPO', ('dense', 'grpo')),
      ('PPO above PPO with sparse ones', ('sparse', 'ppo')),
      ('PPO above PPO with their sum at the end', ('dense', 'ppo')),
    )
  ),
  Claim(
    'M29',
    'GAE over turns above GAE over tokens, both with rewards of turns',
    ('dense', 'turn_ppo'),
    _OWN,
    OUTCOME,
  ),
  *(
    Claim(
      'A126 POAD',
      'with rewards of turns above PPO that discounts tokens',
      (world, _POAD),
      (world, _PPO),
      REWARD,
    )
    for world in _LENGTHS
  ),
  *(
    Claim(
      'A126 POAD',
      'with rewards of turns the gap to PPO grows with the length of words',
      (f'credited_{name}', _POAD),
      ('credited_letter', _POAD),
      REWARD,
      base=_PPO,
    )
    for name in ('word', 'phrase')
  ),
)
