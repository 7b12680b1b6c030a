"""Worlds and claims of grids of other packages: Taxi and BabyAI.

Policies begin with clones of walks, runs/taxi_start and runs/babyai_renamed,
whose commands are in README.md. Environments answer on the host. Needs the
extra 'games'.
"""

from experiments.papers.episodes.cases import OUTCOME, Claim, World

_TAXI = ('turn_ppo', 'grpo', 'filtered_bc')
_PLAYED = {'evaluation.every': 40}
WORLDS = {
  'taxi': World(
    'taxi', _TAXI, {'model.path': 'runs/taxi_start', 'evaluation.every': 100}
  ),
  'babyai_alone': World('babyai', ('grpo',), _PLAYED),
  'babyai_renamed': World(
    'babyai', ('grpo',), {**_PLAYED, 'model.path': 'runs/babyai_renamed'}
  ),
}
# GymnasiumText.best_return(24), the mean over all initial states, for training
# episodes; that of gymnasium_text.solved_table over the 64 that are evaluated
# greedily. The return of RecordedWalks(noise=1.0, turns=24), 1,000 walks.
BEST, RANDOM = {'final/reward': 7.93, 'greedy/reward': 7.984}, -94.2
_SOURCE = 'M28'
# Of the clone in BabyAI, on the episodes that are evaluated.
DRAWN, GREEDY = 'held_out/outcome', 'greedy/outcome'
START = {DRAWN: 0.520, GREEDY: 0.610}
_RENAMED, _LID = ('babyai_renamed', 'grpo'), 'M89 LID'
CLAIMS = (
  *(
    Claim(_SOURCE, f'{name} {text}', ('taxi', name), least, metric, 0)
    for name in ('turn_ppo', 'grpo')
    for metric, best in BEST.items()
    for text, least in (
      ('reaches 95% of the best return', round(0.95 * best, 3)),
      (
        'goes 95% of the way from random',
        round(0.95 * best + 0.05 * RANDOM, 3),
      ),
    )
  ),
  *(
    Claim(
      _SOURCE,
      'PPO above filtered BC',
      ('taxi', 'turn_ppo'),
      ('taxi', 'filtered_bc'),
      metric,
    )
    for metric in BEST
  ),
  *(
    Claim(
      _LID,
      'RL after gathering above RL without it',
      _RENAMED,
      ('babyai_alone', 'grpo'),
      metric,
    )
    for metric in (OUTCOME, DRAWN, GREEDY)
  ),
  *(
    Claim(_LID, 'above the clone of gathered walks', _RENAMED, least, metric)
    for metric, least in START.items()
  ),
)
