"""Methods for episodes of several turns, each row where its paper's claim acts.

export XLA_FLAGS=--xla_backend_optimization_level=0
export JAX_COMPILATION_CACHE_DIR=runs/compiled
python -m experiments.sweep --paper=episodes --jitted --by_stages
  --workdir=runs/episodes
python -m experiments.papers.episodes.excerpt --workdir=runs/episodes
  --out=experiments/papers/episodes/results.jsonl
python -m experiments.table --paper=episodes --update
"""

import functools
import json
from typing import Any

from experiments.papers.episodes import (
  aviary,
  bargaining,
  credited,
  grids,
  isolated,
  later,
  partners,
  rooms,
)
from experiments.papers.episodes.cases import (
  CALLS,
  GRID,
  MAZE,
  NEAR_BEST,
  NO_KL,
  OUTCOME,
  PLANNED,
  RIGHT,
  SPARSE,
  WEIGHTS,
  Claim,
  World,
)
from experiments.sweeps import runs as sweep_runs

# Answers have a letter more, and the policy earns nothing but at the goal.
TOLD = {**SPARSE, 'rollout.max_response_tokens': 60}
FEEDBACK = 'method.shaping.FeedbackReward.'
SLOW = {**MAZE, 'optimizer.learning_rate': 1e-3, 'iterations': 200}
MOVES = {'task.noise': 0.3, 'evaluation.every': 0, 'iterations': 100}
# Eight contexts with one best of eight actions each; others earn up to 0.8.
TRIGGERS = {
  WEIGHTS: "{'value': 1.0}",
  'rollout.group_size': 16,
  'optimizer.learning_rate': 5e-3,
  'evaluation.every': 0,
  'iterations': 200,
}
WORLDS = {
  'dense': World(
    'keydoor',
    ('grpo', 'gigpo', 'turn_ppo', 'ppo', 'rloo', 'salt'),
    GRID,
  ),
  'dense_later': World('keydoor', ('empg', 'epo'), GRID),  # a later commit
  'dense_last': World('keydoor', ('reinforce', 'ppdpp', 'poad'), GRID),
  'sparse': World('keydoor', ('grpo', 'ppo', 'rloo'), SPARSE),
  'sparse_turns': World('keydoor', ('turn_ppo',), SPARSE),  # a later commit
  'sparse_no_kl': World('keydoor', ('ppo',), NO_KL),
  **{
    f'planned_{count}': World(
      'planned_keydoor',
      ('turn_ppo', 'hiper'),
      {**PLANNED, 'task.subtasks': count, 'iterations': iterations},
    )
    for count, iterations in ((1, 60), (3, 200))
  },
  'told': World('told_keydoor', ('turn_ppo', 'oni'), TOLD),
  **{
    f'told_{name}': World('told_keydoor', ('oni',), {**TOLD, **changes})
    for name, changes in (
      ('undecayed', {FEEDBACK + 'exponent': 0.0}),
      ('late', {FEEDBACK + 'delay': 20}),
      ('classified', {FEEDBACK + 'kind': 'classification'}),
      ('ranked', {FEEDBACK + 'kind': 'ranking'}),
    )
  },
  'tools': World(
    'priced_tools', ('grpo', 'otc', 'ppo', 'router_r1', 'duration_ppo'), {}
  ),
  'tools_fast': World(
    'priced_tools', ('grpo', 'llds'), {'optimizer.learning_rate': 1e-2}
  ),
  'tools_early': World('priced_tools', ('aspo',), {}),
  'tools_unbiased': World(
    'priced_tools', ('aspo',), {'method.credit.FirstCallBias.coef': 0.0}
  ),
  'moves': World('logged_moves', ('grpo',), MOVES),
  'moves_sft': World(
    'logged_moves', ('grpo',), {**MOVES, 'model.path': 'runs/moves_start'}
  ),
  'triggers': World('bandit', ('rlprompt',), TRIGGERS),
  'triggers_raw': World(
    'bandit',
    ('rlprompt',),
    TRIGGERS
    | {
      'method.credit.GroupCenter': None,
      'method.credit.GroupScale': None,
    },
  ),
  'maze': World('keydoor', ('turn_ppo', 'filtered_bc'), MAZE),
  'maze_slow': World('keydoor', ('turn_ppo',), SLOW),
  **later.WORLDS,
  **credited.WORLDS,
  **isolated.WORLDS,
  **bargaining.WORLDS,
  **partners.WORLDS,
  **rooms.WORLDS,
  **grids.WORLDS,
  **aviary.WORLDS,
}
_PLAIN, _FARMED = ('told', 'turn_ppo'), ('told_undecayed', 'oni')
CLAIMS = (
  *(
    Claim('M29', f'PPO above {name.upper()}', (w, 'ppo'), (w, name), OUTCOME)
    for w in ('dense', 'sparse')
    for name in ('rloo', 'grpo')
  ),
  *(
    Claim(
      'M29', 'dense rewards help', ('dense', name), ('sparse', name), OUTCOME
    )
    for name in ('ppo', 'rloo', 'grpo')
  ),
  Claim(
    'M29',
    'GAE over turns above GAE over tokens',
    ('dense', 'turn_ppo'),
    ('dense', 'ppo'),
    OUTCOME,
  ),
  Claim(
    'M29',
    'GAE over turns above GAE over tokens',
    ('sparse_turns', 'turn_ppo'),
    ('sparse', 'ppo'),
    OUTCOME,
  ),
  Claim(
    'M29',
    'GAE over turns above GAE over tokens',
    ('sparse_turns', 'turn_ppo'),
    ('sparse_no_kl', 'ppo'),
    OUTCOME,
  ),
  Claim(
    'M29',
    'a KL term in the reward hinders PPO',
    ('sparse_no_kl', 'ppo'),
    ('sparse', 'ppo'),
    OUTCOME,
  ),
  *(
    Claim(
      'A214 HiPER',
      'above flat GAE',
      (f'planned_{count}', 'hiper'),
      (f'planned_{count}', 'turn_ppo'),
      OUTCOME,
    )
    for count in (1, 3)
  ),
  Claim(
    'A214 HiPER',
    'the gap to flat GAE grows with sub-tasks',
    ('planned_3', 'hiper'),
    ('planned_1', 'hiper'),
    OUTCOME,
    base='turn_ppo',
  ),
  *(
    Claim(source, 'above GRPO', ('dense', name), ('dense', 'grpo'), OUTCOME)
    for source, name in (
      ('GiGPO', 'gigpo'),
      ('A199 SALT', 'salt'),
    )
  ),
  *(
    Claim(
      source, 'above GRPO', ('dense_later', name), ('dense', 'grpo'), OUTCOME
    )
    for source, name in (('L72 EMPG', 'empg'), ('A78 EPO', 'epo'))
  ),
  Claim(
    'M93 PPDPP',
    'above REINFORCE',
    ('dense_last', 'ppdpp'),
    ('dense_last', 'reinforce'),
    OUTCOME,
  ),
  Claim(
    'A126 POAD',
    'with words of one token not below PPO',
    ('dense_last', 'poad'),
    ('dense', 'ppo'),
    OUTCOME,
    0,
  ),
  Claim(
    'M2 RLPrompt',
    'nine of ten samples are the best',
    ('triggers', 'rlprompt'),
    0.9,
    RIGHT,
    0,
  ),
  Claim(
    'M2 RLPrompt',
    'z-scores help',
    ('triggers', 'rlprompt'),
    ('triggers_raw', 'rlprompt'),
    RIGHT,
  ),
  *(
    Claim(
      'M28',
      'PPO reaches 95% of the best return',
      (world, 'turn_ppo'),
      NEAR_BEST,
      'final/maze',
      0,
    )
    for world in ('maze', 'maze_slow')
  ),
  *(
    Claim('R30 ONI', text, (world, 'oni'), other, OUTCOME)
    for text, world, other in (
      ('above the plain agent', 'told', _PLAIN),
      ('counts keep messages from being farmed', 'told', _FARMED),
      ('labels 20 iterations late still help', 'told_late', _PLAIN),
      ('a classifier above look-up', 'told_classified', ('told', 'oni')),
      ('a ranking above look-up', 'told_ranked', ('told', 'oni')),
    )
  ),
  Claim(
    'M28',
    'PPO above filtered BC',
    ('maze', 'turn_ppo'),
    ('maze', 'filtered_bc'),
    'final/maze',
  ),
  Claim(
    'L218 LLDS',
    'GRPO collapses at a higher rate',
    ('tools_fast', 'grpo'),
    ('tools', 'grpo'),
    RIGHT,
    -1,
  ),
  Claim(
    'L218 LLDS',
    'above GRPO',
    ('tools_fast', 'llds'),
    ('tools_fast', 'grpo'),
    RIGHT,
  ),
  Claim('OTC', 'fewer calls', ('tools', 'otc'), ('tools', 'grpo'), CALLS, -1),
  Claim('OTC', 'as right', ('tools', 'otc'), ('tools', 'grpo'), RIGHT, 0),
  Claim(
    'Router-R1',
    'cheaper',
    ('tools', 'router_r1'),
    ('tools', 'ppo'),
    'final/cost',
    -1,
  ),
  Claim(
    'Router-R1', 'as right', ('tools', 'router_r1'), ('tools', 'ppo'), RIGHT, 0
  ),
  Claim(
    'A55 durations',
    'more calls of the slow tool',
    ('tools', 'duration_ppo'),
    ('tools', 'ppo'),
    'final/slow',
  ),
  Claim(
    'A55 durations',
    'more often right',
    ('tools', 'duration_ppo'),
    ('tools', 'ppo'),
    RIGHT,
  ),
  *(
    Claim(
      'A103 ASPO',
      text,
      ('tools_early', 'aspo'),
      ('tools_unbiased', 'aspo'),
      metric,
      sign,
    )
    for text, metric, sign in (
      ('earlier first call', 'mean/before_call per mean/called', -1),
      ('as right', RIGHT, 0),
    )
  ),
  *(
    Claim(
      'M82 Think in Games',
      'right up to the noise of labels, 0.75',
      (world, 'grpo'),
      0.75,
      RIGHT,
      0,
    )
    for world in ('moves', 'moves_sft')
  ),
  Claim(
    'M82 Think in Games',
    'better from SFT than from random weights',
    ('moves_sft', 'grpo'),
    ('moves', 'grpo'),
    RIGHT,
  ),
  *later.CLAIMS,
  *credited.CLAIMS,
  *isolated.CLAIMS,
  *bargaining.CLAIMS,
  *partners.CLAIMS,
  *rooms.CLAIMS,
  *aviary.CLAIMS,
  *grids.CLAIMS,
)


def world_of(line: dict[str, Any]) -> str:
  """The world whose settings the run of a line has, '' if none has."""
  return _worlds().get(json.dumps(line['setting'], sort_keys=True), '')


@functools.cache
def _worlds():
  return {
    json.dumps(setting, sort_keys=True): name
    for name, world in WORLDS.items()
    for setting in world.settings()
  }


# Worlds are measured at different times.
table_of = world_of


def get_sweep() -> list[sweep_runs.Setting]:
  """All worlds, in order."""
  return sweep_runs.chain(*(world.settings() for world in WORLDS.values()))
