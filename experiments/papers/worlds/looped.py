"""Worlds whose methods are judged on their own columns.

Runs of `modes` and `windows` go through the loop: sets of evaluation, windows.
Methods have claims on several numbers, against a baseline of the world.
configs/worlds/modes.py and configs/worlds/chain.py have the commands that make
the starts.
"""

import dataclasses

from experiments.papers.worlds.trials import RATE, Claim
from experiments.sweeps import runs as sweep_runs
from experiments.sweeps.runs import Setting

TUNING_SEED = 9
JUDGED = {'evaluation.num_prompts': 512}
GAP = 'gap'  # compared with 0, not with the baseline


@dataclasses.dataclass(frozen=True)
class Looped:
  """A world, and what papers say of its methods against the first of them.

  rates: of the comparison, by method; where others were tried, the best by
    `judging.tuning_score` with TUNING_SEED.
  common: settings of all methods. own: of single ones.
  columns: name in lines and tables -> metric of the last evaluation, or 'A - B'
    of two. claims: on columns; they were written before the runs.
  """

  rates: dict[str, float]
  common: Setting
  columns: dict[str, str]
  claims: dict[str, tuple[Claim, ...]]
  own: dict[str, Setting] = dataclasses.field(default_factory=dict)
  tried: tuple[float, ...] = ()
  seeds: tuple[int, ...] = (0, 1, 2, 3, 4)

  @property
  def baseline(self) -> str:
    """The first method."""
    return next(iter(self.rates))

  def settings(self, config: str) -> list[Setting]:
    """Runs that choose every method's rate, and those at that rate."""
    found = []
    for name, rate in self.rates.items():
      more = self.common | self.own.get(name, {})
      tuning = sweep_runs.product({'seed': (TUNING_SEED,), RATE: self.tried})
      one = sweep_runs.equal_conditions(config, (name,), more, 1)
      found += sweep_runs.crossed(one, tuning)
      # Where `common` has other numbers of JUDGED, they count.
      judged = {'evaluation.every': more['iterations'], **JUDGED}
      more = {**more, **judged, **self.common}
      one = sweep_runs.equal_conditions(config, (name,), more, 1)
      runs = sweep_runs.product({'seed': self.seeds, RATE: (rate,)})
      found += sweep_runs.crossed(one, runs)
    return found


_FREE, _GUESSED = 'evaluation/', 'sample_reward/guessed'
_EASY, _HARD = f'{_FREE}easy/', f'{_FREE}hard/'
_FEWER = Claim('fewer tokens', 'length', -1)
_AS_ACCURATE = Claim('as accurate', sign=0)
_BY_DIFFICULTY = Claim('guesses where it is easy', GAP)
_CHEAPER = (_FEWER, _AS_ACCURATE, _BY_DIFFICULTY)
_BOTH = "('outcome', 'guessed')"
_NO_CLAIM = Claim('none', sign=None)
_HIGHER = Claim('higher accuracy')
_GRID = (1e-4, 3e-4, 1e-3)
_FOUR = {'evaluation.num_samples': 4, 'evaluation.batch_prompts': 128}
_VALUE = 'method.losses.{}.coef'
_OUTCOME = {'task.reward_weights': "{'outcome': 1.0}"}
# Trees of 32 rows, so that an iteration has as many as the others.
_TREES = {'method.rollout.step_tokens': 6}
_TREES |= {'rollout.group_size': 4, 'rollout.num_prompts': 8}
_BOTH_KINDS = {'rollout.num_prompts': 128, 'rollout.logged_prompts': 64}
_COMPARISONS = {'task.num_train': 3000, 'iterations': 300}
_COMPARISONS |= {'evaluation.num_prompts': 256, 'evaluation.num_samples': 4}
WORLDS = {
  'modes': Looped(
    rates={
      'grpo': 6e-4,
      'ada_grpo': 6e-4,
      'degrpo': 6e-4,
      'degrpo@short_responses': 3e-4,
      'a2fm': 6e-4,
    },
    tried=(3e-4, 6e-4),
    common={
      'model.path': 'runs/modes_warm',
      'iterations': 40,
    },
    own={'ada_grpo': {'method.shaping.FormatRarity.total_steps': 40}},
    columns={
      'sampled': f'{_FREE}avg_at_4',
      'length': f'{_FREE}sample_length',
      'guesses': f'{_FREE}{_GUESSED}',
      'mode': f'{_FREE}sample_reward/mode',
      'sampled easy': f'{_EASY}avg_at_4',
      'sampled hard': f'{_HARD}avg_at_4',
      'guesses easy': f'{_EASY}{_GUESSED}',
      'guesses hard': f'{_HARD}{_GUESSED}',
      GAP: f'{_EASY}{_GUESSED} - {_HARD}{_GUESSED}',
      'instant': f'{_FREE}instant/avg_at_4',
      'thought': f'{_FREE}thought/avg_at_4',
      'rechecked': f'{_FREE}rechecked/avg_at_4',
    },
    claims={
      'ada_grpo': _CHEAPER,
      'degrpo': _CHEAPER,
      'degrpo@short_responses': _CHEAPER,
      'a2fm': (Claim('more guesses', 'guesses'), *_CHEAPER),
    },
  ),
  'windows': Looped(
    rates=dict.fromkeys(('ppo', 't_ppo'), 1e-4),
    common={
      'model.path': 'runs/chain_warm',
      'rollout.window_tokens': 48,
      'iterations': 100,
    },
    own={
      'ppo': {_VALUE.format('ValueClip'): 0.02},
      't_ppo': {_VALUE.format('FinishedValue'): 0.02},
    },
    columns={
      'sampled': f'{_FREE}avg_at_4',
      'greedy': f'{_FREE}pass_at_1',
      'length': f'{_FREE}sample_length',
      'entropy': f'{_FREE}entropy',
    },
    claims={
      't_ppo': (
        Claim('learns where responses need several windows', 'greedy'),
        Claim('learns where responses need several windows'),
      )
    },
  ),
  # The grounding of elements on a small screen: boxes, ranked points.
  'boxes': Looped(
    rates={'grpo': 1e-4, 'dr_grpo': 3e-4, 'gui_g1': 3e-4, 'vision_r1': 3e-4},
    tried=_GRID,
    common=_FOUR | {'model.path': 'runs/boxes_warm', 'iterations': 100},
    # Its reward is the format, to which it adds precision and recall.
    own={'vision_r1': {'task.reward_weights': "{'format': 1.0}"}},
    columns={
      'sampled': f'{_FREE}avg_at_4',
      'greedy': f'{_FREE}pass_at_1',
      'iou': f'{_FREE}sample_reward/iou',
    },
    claims={
      'gui_g1': (_HIGHER,),
      'vision_r1': (_HIGHER, Claim('more overlap', 'iou')),
    },
  ),
  'points': Looped(
    rates={'rloo': 3e-4, 'aepo': 1e-3},
    tried=_GRID,
    common=_FOUR | {'model.path': 'runs/points_warm', 'iterations': 100},
    columns={
      'sampled': f'{_FREE}avg_at_4',
      'greedy': f'{_FREE}pass_at_1',
      'answers': f'{_FREE}sample_reward/num_answers',
    },
    claims={
      'aepo': (
        _HIGHER,
        Claim('fewer answers in a response', 'answers', -1),
      )
    },
  ),
  'multiple_choice': Looped(
    rates=dict.fromkeys(('grpo@token_mean', 'tw_grpo'), 1e-4),
    tried=_GRID,
    common=_FOUR
    | {'model.path': 'runs/multiple_choice_warm', 'iterations': 100},
    columns={
      'sampled': f'{_FREE}avg_at_4',
      'greedy': f'{_FREE}pass_at_1',
      'partial': f'{_FREE}sample_reward/partial',
    },
    claims={'tw_grpo': (_HIGHER,)},
  ),
  # Two rewards that contradict each other, one of which spreads more.
  'two_rewards': Looped(
    rates=dict.fromkeys(
      (
        *('grpo', 'mo_grpo', 'parrot@groups', 'maxmin', 'rluf', 'gtalign'),
        *('ppo', 'constrained_rlhf'),
      ),
      1.5e-4,
    ),
    common=_FOUR | {'model.path': 'runs/chain_warm', 'iterations': 12},
    own={
      'mo_grpo': {'method.credit.ComponentScale.components': _BOTH},
      'parrot@groups': {
        'method.credit.ComponentScale.components': _BOTH,
        'method.credit.ParetoFront.components': _BOTH,
      },
      'maxmin': {'method.shaping.WorstComponent.components': _BOTH},
      'rluf': {'method.shaping.GatedSum.components': _BOTH},
      'gtalign': {'method.shaping.CobbDouglas.components': _BOTH},
      'constrained_rlhf': {
        'method.credit.Lagrangian.components': _BOTH,
        'method.credit.Lagrangian.thresholds': (0.6, 0.3),
        'method.value_target.components': _BOTH,
        # Hundreds of steps at 0.1 in the paper, twelve here.
        'method.credit.Lagrangian.learning_rate': 5.0,
        'model.num_values': 3,
      },
    },
    columns={
      'sampled': f'{_FREE}avg_at_4',
      'guesses': f'{_FREE}{_GUESSED}',
      'length': f'{_FREE}sample_length',
      'entropy': f'{_FREE}entropy',
    },
    claims={
      'mo_grpo': (Claim('the outcome is not drowned'),),
      'parrot@groups': (Claim('the outcome is not drowned'),),
      'maxmin': (Claim('what is served worst, the outcome, is served better'),),
      'rluf': (_NO_CLAIM,),
      'gtalign': (_NO_CLAIM,),
      'constrained_rlhf': (
        Claim('the outcome is not drowned', against='ppo'),
        Claim('guesses stop at their threshold', 'guesses', -1, 'ppo'),
      ),
    },
  ),
  # From random weights: the same set function as reward and as gains.
  'coverage': Looped(
    rates=dict.fromkeys(('reinforce', 'subpo'), 1e-2),
    tried=(1e-3, 3e-3, 1e-2),
    # Eight prompts, all alike.
    common={
      'iterations': 100,
      'evaluation.num_prompts': 8,
      'evaluation.num_samples': 32,
    },
    own={
      'reinforce': {'task.reward_weights': "{'coverage': 1.0}"},
      'subpo': {'task.reward_weights': "{'coverage': 0.0}"},
    },
    columns={
      'coverage': f'{_FREE}sample_reward/coverage',
      'sampled': f'{_FREE}avg_at_32',
    },
    claims={'subpo': (Claim('covers more', 'coverage'),)},
  ),
  # Problems come back; most of them are solved always or never.
  'graded': Looped(
    rates=dict.fromkeys(
      (
        *('grpo', 'adarft', 'mopps', 'mopps@shuffled'),
        *('clip_higher', 'balanced_filtering'),
      ),
      3e-4,
    ),
    tried=_GRID,
    common=_FOUR | {'model.path': 'runs/explore_warm', 'iterations': 60},
    own={'adarft': {'method.selector.levels': 3}},
    columns={
      'sampled': f'{_FREE}avg_at_4',
      'greedy': f'{_FREE}pass_at_1',
      '2 operations': f'{_FREE}level_0/avg_at_4',
      '4 operations': f'{_FREE}level_2/avg_at_4',
      'tokens': 'rollout/tokens_total',
    },
    claims={
      'adarft': (_HIGHER,),
      'mopps': (
        Claim('higher accuracy', against='mopps@shuffled'),
        Claim('as accurate', sign=0, against='clip_higher'),
        Claim('fewer tokens', 'tokens', -1, 'clip_higher'),
      ),
      'clip_higher': (Claim('higher accuracy with dynamic sampling'),),
      'balanced_filtering': (_HIGHER,),
    },
  ),
  # Pairs that differ by more than right and wrong; steps with scores.
  'stepped': Looped(
    rates={
      **dict.fromkeys(('online_dpo', 'ppo'), 1.5e-4),
      **dict.fromkeys(('mapl', 'w_dpo'), 5e-5),
      **dict.fromkeys(('mcts_dpo', 'cosmos', 'oprm'), 4.5e-4),
    },
    tried=(5e-5, 1.5e-4, 4.5e-4),
    common=_FOUR | {'model.path': 'runs/chain_warm', 'iterations': 12},
    own={
      'w_dpo': {'method.pairs.process': 'steps'},
      'mcts_dpo': _TREES,
      'cosmos': _TREES,
      # Else they were those of `brief`, which a sweep runs once.
      'ppo': {'task.reward_weights': "{'outcome': 1.0, 'steps': 0.0}"},
      'oprm': {
        **_OUTCOME,
        'add': [
          "reward_models=RewardModel(path='runs/stepped_prm', steps='min', "
          "weight=0.0, step_ends=(';','>'))"
        ],
      },
    },
    columns={
      'sampled': f'{_FREE}avg_at_4',
      'greedy': f'{_FREE}pass_at_1',
      'steps': f'{_FREE}sample_reward/steps',
      'length': f'{_FREE}sample_length',
      'entropy': f'{_FREE}entropy',
    },
    claims={
      'mapl': (_HIGHER,),
      'w_dpo': (Claim('more right steps', 'steps'), _HIGHER),
      'cosmos': (dataclasses.replace(_NO_CLAIM, against='mcts_dpo'),),
      'oprm': (Claim('higher accuracy', against='ppo'),),
    },
  ),
  # Data and samples in one batch, and prompts that name a score; the others are
  # in the paper `preferences`.
  'preferences': Looped(
    rates=dict.fromkeys(
      ('dpo', 'hypo', 'reward_augmented_dpo', 'ppo', 'hnpg'), 3e-4
    ),
    common={
      'model.path': 'runs/warm',
      'iterations': 80,
      'evaluation.num_prompts': 400,
      'guards.log_rollouts': 0,
    },
    own={
      # At 1e-4 the KL does nothing in so short a run.
      'hypo': {**_BOTH_KINDS, 'method.losses.SampledKL.coef': 0.1},
      'reward_augmented_dpo': {
        'task': 'GoalPrompts(task=RulePairs(task=Arithmetic(digits=2, '
        'signed=False, reverse=True)))',
        'rollout.max_prompt_tokens': 9,
      },
      'ppo': {'rollout.logged_prompts': 0},
      'hnpg': _BOTH_KINDS,
    },
    columns={
      'greedy': f'{_FREE}pass_at_1',
      'pairs': f'{_FREE}preference/accuracy',
      'chosen': f'{_FREE}preference/logp_win',
    },
    claims={
      'hypo': (
        Claim('better than DPO', 'greedy'),
        Claim('chosen responses fall less', 'chosen'),
      ),
      'reward_augmented_dpo': (Claim('better than DPO', 'greedy'),),
      'hnpg': (Claim('none', 'greedy', None, 'ppo'),),
    },
    seeds=(10, 11, 12, 13, 14),
  ),
  # Models of comparisons by a hidden rule, on held-out ones.
  'proxy': Looped(
    rates=dict.fromkeys(
      ('reward_model', 'gc_reward_model', 'dpo', 'ld_dpo'), 1e-3
    ),
    common=_COMPARISONS,
    columns={
      'pairs': f'{_FREE}preference/accuracy',
      'rule': f'{_FREE}sample_reward/outcome',
      'length': f'{_FREE}sample_length',
    },
    claims={
      'gc_reward_model': (Claim('more pairs right', 'pairs'),),
      'dpo': (Claim('as many pairs right as a reward model', 'pairs', 0),),
      'ld_dpo': (
        Claim('shorter responses', 'length', -1, 'dpo'),
        Claim('as good by the rule', 'rule', 0, 'dpo'),
      ),
    },
    seeds=(10, 11, 12, 13, 14),
  ),
  # Three of eleven annotators have another taste.
  'annotators': Looped(
    rates=dict.fromkeys(('reward_model', 'annotator_mixture'), 1e-3),
    common=_COMPARISONS,
    columns={
      'pairs': f'{_FREE}preference/accuracy',
      'first group': f'{_FREE}preference/first_group',
    },
    claims={
      'annotator_mixture': (Claim('more pairs right', 'pairs'),),
    },
    seeds=(10, 11, 12, 13, 14),
  ),
}


def get_sweep() -> list[Setting]:
  """All worlds, in order."""
  return sweep_runs.chain(*(x.settings(name) for name, x in WORLDS.items()))
