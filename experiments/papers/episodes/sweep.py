"""Methods for episodes of several turns, each row where its paper's claim acts.

export XLA_FLAGS=--xla_backend_optimization_level=0
export JAX_COMPILATION_CACHE_DIR=runs/compiled
python -m experiments.sweep --paper=episodes --jitted --by_stages
  --workdir=runs/episodes
python -m experiments.papers.episodes.excerpt --workdir=runs/episodes
  --out=experiments/papers/episodes/results.jsonl
python -m experiments.table --paper=episodes --update
"""

import dataclasses
import functools
import json
from typing import Any

from experiments.sweeps import runs as sweep_runs


@dataclasses.dataclass(frozen=True)
class World:
  """Runs under equal conditions: methods x seeds; the first is the baseline."""

  config: str
  methods: tuple[str, ...]
  common: dict[str, Any]

  def settings(self) -> list[sweep_runs.Setting]:
    """A run for each method and seed."""
    return sweep_runs.equal_conditions(
      self.config, self.methods, self.common, SEEDS
    )


@dataclasses.dataclass(frozen=True)
class Claim:
  """Row of the table: a (world, method) against another or against a number.

  metric: of a line's `last`, or 'A per B' of two. sign: of the claimed
  difference; 0: not worse. base: method whose values are subtracted in both
  worlds; '' none.
  """

  source: str
  text: str
  one: tuple[str, str]
  other: tuple[str, str] | float
  metric: str
  sign: int = 1
  base: str = ''


SEEDS = 5
# A grid whose shortest solution has four actions: a policy that begins with
# random letters finds it. A run takes five seconds of a core.
GRID = {
  'task.seed': 58,
  'task.num_train': 1,
  'model.config.num_layers': 1,
  'model.config.width': 32,
  'model.config.num_heads': 2,
  'model.config.num_kv_heads': 2,
  'model.config.mlp_size': 64,
  'rollout.num_prompts': 8,
  'rollout.turns.max_turns': 10,
  'rollout.max_response_tokens': 50,
  'update.minibatch_prompts': 4,
  'optimizer.learning_rate': 3e-3,
  'iterations': 60,
}
WEIGHTS = 'task.reward_weights'
SPARSE = {**GRID, WEIGHTS: "{'outcome': 1.0}"}
MAZE = {**GRID, WEIGHTS: "{'maze': 1.0}"}
NO_KL = {**SPARSE, 'method.shaping.KLInReward.coef': 0.0}
# Begins with well-formed turns of random words; README has its command.
PLANNED = {
  **GRID,
  'model.path': 'runs/planned_start',
  'rollout.max_response_tokens': 70,
  'optimizer.learning_rate': 1e-3,
}
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
# Bargaining from a clone of scripted buyers; README has its command.
HAGGLING = {'model.path': 'runs/haggling_start', 'iterations': 100}
SCORES = {**HAGGLING, WEIGHTS: "{'score': 1.0}"}
# Dialogues of scripted buyers, then played with held-out sellers.
RECORDED = {'optimizer.learning_rate': 3e-3, 'evaluation.every': 300}
TILT = 'evaluation.transforms.ActionValueTilt.'
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
  'haggling': World('haggling', ('reinforce', 'ppdpp'), HAGGLING),
  'haggling_scores': World('haggling', ('reinforce', 'epo'), SCORES),
  'haggling_start': World(
    'haggling',
    ('reinforce',),
    {**HAGGLING, 'optimizer.learning_rate': 0.0, 'iterations': 20},
  ),
  **{
    f'recorded_{percent}': World(
      'recorded_haggling',
      ('sft', 'filtered_bc', 'ilql'),
      {**RECORDED, 'task.good': percent / 100},
    )
    for percent in (20, 80)
  },
  'recorded_unclipped': World(
    'recorded_haggling',
    ('ilql',),
    {**RECORDED, 'task.good': 0.8, TILT + 'beta': 4.0, TILT + 'clip': None},
  ),
}
OUTCOME, CALLS = 'mean/outcome', 'final/calls'
RIGHT = 'final/outcome'
# The shortest solution earns -3, ten impossible actions -40.
NEAR_BEST = -3.0 - 0.05 * 37.0
RATIO, OPEN = 'final/ratio', 'final/open'  # sale to list; turns without a deal
_CLONE = ('haggling_start', 'reinforce')
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
  *(
    Claim('M93 PPDPP', text, ('haggling', 'ppdpp'), other, metric, sign)
    for text, other, metric, sign in (
      ('more deals than its SFT start', _CLONE, RIGHT, 1),
      ('a higher sale-to-list ratio than its start', _CLONE, RATIO, 1),
      ('fewer turns without a deal', _CLONE, OPEN, -1),
      ('more deals', ('haggling', 'reinforce'), RIGHT, 1),
      ('a higher ratio', ('haggling', 'reinforce'), RATIO, 1),
    )
  ),
  *(
    Claim('A78 EPO', text, ('haggling_scores', 'epo'), other, metric)
    for text, other, metric in (
      ('more deals than its SFT start', _CLONE, RIGHT),
      ('a higher sale-to-list ratio than its start', _CLONE, RATIO),
      ('more deals', ('haggling_scores', 'reinforce'), RIGHT),
      ('a higher ratio', ('haggling_scores', 'reinforce'), RATIO),
    )
  ),
  *(
    Claim(
      'M75 ILQL',
      f'above {name} on held-out sellers, {percent}% good dialogues',
      (f'recorded_{percent}', 'ilql'),
      (f'recorded_{percent}', method),
      metric,
    )
    for percent in (20, 80)
    for name, method in (('cloning', 'sft'), ('filtered BC', 'filtered_bc'))
    for metric in ('held_out/mean', 'greedy/mean')
  ),
  *(
    Claim(
      'M75 ILQL',
      'above cloning with beta 4 and no clip, 80% good dialogues',
      ('recorded_unclipped', 'ilql'),
      ('recorded_80', 'sft'),
      metric,
    )
    for metric in ('held_out/mean', 'greedy/mean')
  ),
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
