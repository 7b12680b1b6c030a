"""RAGEN on Sokoban and a frozen lake: PPO, GRPO, RLOO and GiGPO."""

import dataclasses

from experiments.papers import settings
from experiments.papers.recipe import Recipe, Row
from rl_jax.config import EvaluationConfig, ExperimentConfig
from rl_jax.episodes.turns import TurnConfig
from rl_jax.learning.optimizers import OptimizerConfig
from rl_jax.learning.update import UpdateConfig
from rl_jax.method import Method
from rl_jax.rollouts.collect import RolloutConfig
from rl_jax.tasks import EvaluationSet, Reworded
from rl_jax.verification.pool import VerifierConfig
from rl_jax.worlds import Sokoban

MODEL = 'Qwen/Qwen2.5-0.5B-Instruct'
FIRST = (
  '{observation}You can: {actions}.\nThink within <think> </think>, then '
  'write one action within <answer> </answer>.'
)
MESSAGE = (
  '{step} actions were made; the last ones:\n{history}The room is now:\n'
  '{observation}\nYou can: {actions}.\nThink within <think> </think>, then '
  'write one action within <answer> </answer>.'
)
_WEIGHTS = {'outcome': 10.0, 'pushed': 1.0, 'steps': -0.1, 'invalid': -0.1}
VARIANTS = {
  'frozen_lake': (
    "task.task=FrozenLake(reward_weights={'outcome': 1.0, 'invalid': -0.1})",
  ),
}


def get_config(method: Method) -> ExperimentConfig:
  """8 rooms of 16 episodes; 256 others every 10 iterations."""
  return ExperimentConfig(
    iterations=200,
    task=Reworded(
      task=Sokoban(
        num_train=100_000, num_held_out=256, reward_weights=_WEIGHTS
      ),
      turns=5,
      chat=True,
      first=FIRST,
      message=MESSAGE,
      opening='<answer>',
      closing='</answer>',
    ),
    method=method,
    model=settings.model(MODEL),
    rollout=RolloutConfig(
      num_prompts=8,
      group_size=16,
      max_prompt_tokens=512,
      max_response_tokens=8192,
      max_rounds=1,
      turns=TurnConfig(
        max_turns=10, max_turn_tokens=400, max_observation_tokens=512
      ),
    ),
    update=UpdateConfig(minibatch_prompts=2, microbatch_prompts=2),
    optimizer=OptimizerConfig(learning_rate=1e-6),
    evaluation=EvaluationConfig(
      every=10,
      split=None,
      sets=(
        EvaluationSet(
          'success',
          split='validation',
          limit=256,
          num_samples=1,
          greedy=False,
          temperature=0.5,
        ),
      ),
    ),
    verifier=VerifierConfig(num_workers=8, timeout_seconds=5.0),
  )


_MEAN = (
  'method.aggregation=TokenMean()',
  'method.group_filter=TopSpread(fraction=0.25)',
)
_COMMON = ('method.losses.PPOClip.clip_high=0.28', *_MEAN)
_ADDED = ('method.losses=EntropyBonus(coef=0.001)',)
_NO_KL = 'method.losses.KLPenalty=null'
_CLIPPED = (
  'method.losses=(PPOClip(clip_low=0.2, clip_high=0.28), '
  'EntropyBonus(coef=0.001))'
)
TINY = (
  'rollout.max_prompt_tokens=640',
  'rollout.turns.max_observation_tokens=64',
  'rollout.max_response_tokens=160',
)
_METHODS = {
  'ppo': Row(
    method='starpo@filtered',
    set=(
      'model.value_head=True',
      'model.critic=own',
      'optimizer.critic_multiplier=10.0',
      'method.credit.BiLevelGAE.gamma_turn=1.0',
    ),
  ),
  'grpo': Row(method='grpo', set=(*_COMMON, _NO_KL), add=_ADDED),
  'rloo': Row(method='rloo', set=(_CLIPPED, *_MEAN)),
  'gigpo': Row(method='gigpo', set=(*_COMMON, _NO_KL), add=_ADDED),
}
ROWS = {
  f'{name}_{game}': dataclasses.replace(row, variant=variant, tiny=TINY)
  for game, variant in (('sokoban', ''), ('frozen_lake', 'frozen_lake'))
  for name, row in _METHODS.items()
}
RECIPE = Recipe(
  title='RAGEN on games',
  paper='arXiv 2504.20073',
  table='no table: curves of figures',
  source='RAGEN-AI/RAGEN @ 5eb79b82, config/base.yaml',
  models=(MODEL,),
  data=(),
  config=get_config,
  rows=ROWS,
  columns=('success',),
  evaluation={},
  played={'success': 1},
  published={},
  unpublished=(
    'the repository has figures, and no table with numbers was found; what can '
    'be compared is the order of curves'
  ),
  protocol='success on 256 games, one sample at temperature 0.5',
  follows='released code',
  stop='200 iterations',
  prompts=(
    (FIRST, 'written here', '-'),
    (MESSAGE, 'written here', '-'),
  ),
  left_out={
    'bandit': 'its arms and their payoffs were not read',
    'countdown': 'its rows and prompt there were not read',
    'metamathqa': 'its rows were not read',
    'webshop': 'its server needs Java, an index and products of a drive',
  },
  unverified=(
    'learning rates, 1e-6 and 1e-5 of the critic',
    'sizes of rooms and lakes, and how often a move slips',
    'RLOO and GiGPO, which the settings of the released file were given to',
  ),
  weaker=(
    'rooms and lakes are drawn by this package, the rules are the same',
    'a turn is one action and an episode has 10 turns; there a turn has up to '
    'five actions and an episode 5 turns',
    'the first message stays in the context of later turns',
    'texts of prompts are written here',
  ),
  traps=(
    'The filter keeps the quarter of the groups that spread most, 2 of 8.',
    'A minibatch is 32 episodes: two groups, so one update after the filter.',
    'Without the filter rewards spread less and less and runs collapse '
    '(paper).',
  ),
  pods=('gpu:h100:1x1x1', 'tpu:v5p:1x1x1'),
)
