"""A world for every method in which it changes what its baseline does."""

import dataclasses

from experiments.flags import configuration


@dataclasses.dataclass(frozen=True)
class Place:
  """world: of configs/. sets: changes of the method, as `--set` without
  `method.`. loop: what it changes is seen in rollouts or draws only.
  """

  world: str
  sets: tuple[str, ...] = ()
  loop: bool = False


# How far the weights have moved from those that sampled, in a test, and how
# the sampler's are rounded.
DRIFT = {
  'bandit': 0.02,
  'boxes': 0.02,
  'calculator': 0.0,
  'chain': 0.0,
  'coverage': 0.0,
  'function_calls': 0.02,
  'haggling': 0.0,
  'keydoor': 0.0,
  'lookup': 0.0,
  'mismatch': 0.02,
  'modes': 0.0,
  'multiple_choice': 0.0,
  'planned_keydoor': 0.0,
  'points': 0.0,
  'preferences': 0.02,
  'priced_tools': 0.0,
  'recorded_haggling': 0.0,
  'returning': 0.02,
  'stale': 0.15,
  'stepped': 0.0,
  'told_keydoor': 0.0,
  'two_rewards': 0.0,
  'unlabelled': 0.02,
  'windows': 0.02,
}
SAMPLER = {name: 'trainer' for name in DRIFT} | {'mismatch': 'int4'}
_STALE = (
  *('cispo', 'clip_higher', 'dppo_kl', 'dppo_tv', 'dual_clip_grpo', 'gmpo'),
  *('gspo', 'minpro', 'sapo', 'topr', 'vespo', 'luspo', 'kl_cov', 'clip_cov'),
  *('dro', 'nft', 'p3o_v1', 'p3o_v2', 'disco', 'pf_ppo', 'dapo', 'llds'),
  'deepseek_v3p2',
)
_MISMATCH = ('icepop', 'k3_rejection', 'seq_mask_tis', 'tis', 'tis_sequence')
_KEYDOOR = (
  *('gigpo', 'retroformer', 'salt', 'starpo', 'turn_ppo', 'turn_rloo'),
)
_MODES = ('a2fm', 'ada_grpo', 'degrpo')
_UNLABELLED = ('empo', 'self_certainty')
_CHAIN = (
  *('adaptive_kl', 'adora', 'apo', 'b_coder', 'balanced_filtering'),
  *('constrained_rlhf', 'copg', 'copo'),
  *(
    'digi_q',
    'direct_advantage',
    'dr_grpo',
    'egpo',
    'expert_iteration',
    'filtered_bc',
    'empg',
    'entropy_quantile',
    'gdc',
  ),
  *('gpg', 'grpo', 'lambda_grpo', 'lite_ppo'),
  *('nlpo', 'nthr', 'opo', 'otb', 'pass_at_k_grpo', 'poad', 'ppo', 'rlmt'),
  *('ppo_max', 'reg_grpo', 'reinforce', 'reinforce_plus_plus'),
  *('reinforce_plus_plus_baseline', 'rep_exp', 'riskpo', 'rloo', 'rlprompt'),
  *('seed_grpo', 'thr', 'xrpo'),
  # On pairs among samples.
  *(
    'dno',
    'gepo',
    'irpo',
    'iterative_dpo',
    'online_dpo',
    'rebel',
  ),
  *('sft', 'spo', 'sppo'),
  # Against samples of an opponent, which fill half of a group.
  *('infalign', 'ipo_md', 'nash_md', 'pairwise_rl', 'rso', 'xpo'),
  # With other weights as the policy that they read.
  *('r_to_q', 'rto'),
  'oprm',  # with drawn scores of steps
  'remax',  # with the first row of a group as the greedy response
  # On several reward components.
  *('gdpo', 'gtalign', 'mo_grpo', 'parrot', 'rluf', 'rm_ensemble', 'rlvr'),
)
# On recorded pairs.
_PREFERENCES = (
  *('alphapo', 'aot', 'apo_down', 'apo_zero', 'bco', 'cdpo', 'cpo', 'discopop'),
  *('cpo_simpo', 'dpo', 'dpop', 'exo', 'f_sft', 'fdpo', 'hinge_dpo', 'hnpg'),
  *('hypo', 'ipo', 'kto', 'ln_dpo', 'mpo_losses', 'nca', 'orpo', 'd2po'),
  *('reward_augmented_dpo', 'reward_model', 'robust_dpo', 'rpo', 'simpo'),
  *('slic', 'wpo', 'sem_dpo', 'seppo', 'aspect_reward_model'),
  *('gc_reward_model', 'process_reward_model', 'reaction_model'),
)
# Constants of the papers that do nothing in responses as short as these.
_SETS = {
  # 1e-5 is for responses of thousands of tokens.
  'apo': ('credit.LongWrongScale.growth=2e-3',),
  # A fifth of the limit, as in the paper; the rows of the test have 28 tokens.
  'dapo': (
    'shaping.OverlongPenalty.max_tokens=28.0',
    'shaping.OverlongPenalty.buffer_tokens=5.6',
  ),
  # No row of the test has moved by half a nat a token.
  'deepseek_v3p2': ('weights.OffPolicyMask.threshold=0.01',),
  # A response is one turn; its steps are marked.
  'empg': ("credit.EntropyModulation.segments='extras'",),
  'poad': (
    "credit.ActionGAE.segments='extras'",
    "value_target.segments='extras'",
  ),
  # The rewards of boxes span 1.4, those of the paper's model several units.
  'par': (
    'shaping.ReferenceSigmoid.k=4.0',
    'shaping.ReferenceSigmoid.free_tokens=3.0',  # of four
  ),
  # A right answer has the format; it may lack steps.
  'gtalign': ("shaping.CobbDouglas.components=('outcome','steps')",),
  # At 1e-4 it is below 0.1% of the gradient.
  'ilql': ('losses.ConservativeQ.coef=1e-2',),
  'xpo': ('losses.Optimism.coef=1e-2',),  # 1e-5: the gradient is the same
  # Of few candidates the two best are mostly equal.
  'rso': ('pairs.keep=4',),
  'nlpo': ('logits.LaggedSupport.min_percent=10',),
  # At 1e-3 it is below 0.1% of the gradient.
  'rlmt': ('losses.EntropyBonus.coef=0.1',),
  # An answer that is right has the format, too.
  'rluf': ('shaping.GatedSum.weights=(0.3,1.0)',),
  'riskpo': ('credit.BundleRisk.bundle=3',),
  'w_dpo': ("pairs.process='steps'",),
  'maxmin': ("shaping.WorstComponent.components=('outcome','guessed')",),
}
_PLACES = {
  'adarft': Place('graded', ('selector.levels=3',), loop=True),
  'craft_gui': Place('graded', loop=True),
  'dr_po': Place('chain', loop=True),
  # Half of a solution is longer than the prompts of this world.
  'ghpo': Place('chain', ('rollout.shares=(0.25,)',), loop=True),
  'guide_grpo': Place('chain', loop=True),
  'mopps': Place('graded', loop=True),
  'policy_rollout': Place('chain', loop=True),
  'rex_rag': Place('lookup', loop=True),
  'cosmos': Place('bandit', ('rollout.step_tokens=1',), loop=True),
  'mcts_dpo': Place('bandit', ('rollout.step_tokens=1',), loop=True),
  'spo_chain': Place('bandit', loop=True),
  'spo_tree': Place('bandit', ('rollout.segment_tokens=1',), loop=True),
}
WHERE = {
  name: Place(world, _SETS.get(name, ()))
  for world, names in (
    ('stale', _STALE),
    ('mismatch', _MISMATCH),
    ('modes', _MODES),
    ('windows', ('t_ppo',)),
    ('unlabelled', _UNLABELLED),
    ('returning', ('hapo',)),
    ('bandit', ('disco_b',)),
    ('calculator', ('aspo', 'router_r1')),
    ('haggling', ('epo', 'ppdpp')),
    ('recorded_haggling', ('ilql', 'qweb')),
    ('keydoor', _KEYDOOR),
    ('planned_keydoor', ('hiper',)),
    ('told_keydoor', ('oni',)),
    ('stepped', ('mapl', 'w_dpo')),
    ('two_rewards', ('maxmin',)),
    ('priced_tools', ('duration_ppo', 'otc')),
    ('boxes', ('dr_rpo', 'gui_g1', 'par', 'vision_r1')),
    ('coverage', ('subpo',)),
    ('function_calls', ('toolrl',)),
    ('multiple_choice', ('tw_grpo',)),
    ('points', ('aepo',)),
    ('preferences', _PREFERENCES),
    ('chain', _CHAIN),
  )
  for name in names
} | _PLACES
NOWHERE = {
  'annotator_mixture': 'reads who compared (configs/worlds/annotators.py)',
  'did': 'measures only, and trains as online_dpo',
  'ld_dpo': 'pairs of rules have equal lengths (see configs/worlds/proxy.py)',
  'nash_ema': 'changes the opponent that samples: on rows it is Nash-MD',
  'cures': 'chunks of samples are drawn in a rollout, and weights follow the '
  'rewards, of which a start has none (configs/worlds/families.py)',
  'critique_grpo': 'reads critiques, which are of prompts that '
  'configs/worlds/criticised_families.py has',
  'rlp': 'thoughts are judged by a text in a rollout; its teacher follows',
  'rlgf': 'a guide writes parts of rows in a rollout: on rows it is PPO',
  'rusca_rl': 'reads criteria (configs/worlds/rubric_topics.py)',
  'pcl': 'the values of prompts follow the rewards, of which a start without '
  'training has none (configs/worlds/graded.py)',
  'rule_reasoner': 'shares follow the rewards of domains, of which a start '
  'without training has none (configs/worlds/graded.py)',
  'spin': 'a sample takes the place of a rejected response: on rows it is DPO',
  'spiral': 'compares the roles of a game (configs/kuhn.py)',
  'text2grad': 'reads spans, which configs/worlds/criticised_families.py marks',
  'tr_dpo': 'moves the reference between updates: in each it is DPO',
}
# Separate mechanisms beside a method: against the method without them.
VARIANTS = {
  **{
    f'ppo_max@{name}': Place('chain')
    for name in (
      *('reward_unscaled', 'reward_centred', 'no_kl', 'whitened'),
      *('advantage_clip', 'critic_first'),
    )
  },
  # Rewards of 0 and 1 over their deviation stay below 5, and the entropy terms
  # below 0.1% of the gradient.
  'ppo_max@reward_clip': Place('chain', ('shaping.RunningScale.clip=0.5',)),
  'ppo_max@entropy_bonus': Place('chain', ('losses.EntropyBonus.coef=0.1',)),
  'ppo_max@entropy_target': Place('chain', ('losses.EntropyTarget.coef=0.1',)),
  'ppo_max@no_policy_clip': Place('stale'),
  'ppo_max@no_value_clip': Place('stale'),
  'ppo_max@ptx': Place('preferences'),
  'poad@ntpo': Place('chain'),  # an action is a response
  **{
    f'par@{name}': Place('boxes', _SETS['par'])
    for name in (
      *('centred', 'tanh', 'arctan', 'polynomial', 'sgfc', 'lsc'),
      *('scalar_sigmoid', 'scalar_tanh', 'scalar_arctan', 'scalar_polynomial'),
      *('scalar_ceiling', 'meanstd', 'clip'),
    )
  },
}
# Variants that are a separate method, not a change of the method's.
ALONE = ('parrot@groups',)
# What switches a part of a piece off: without it the gradient is another one.
PARTS = {
  'dapo': ('losses.PPOClip.clip_high=0.2',),
  'empg': ('credit.EntropyModulation.zeta=0.0',),
  'par': ('shaping.ReferenceSigmoid.length_coef=0.0',),
  'poad': (
    "credit.ActionGAE.segments='turns'",
    "value_target.segments='turns'",
  ),
}
# Pieces that their baselines lack and that change nothing there, with reasons.
IDLE: dict[str, dict[str, str]] = {
  'disco': {
    'losses.1.KLConstraint': 'rows of a teacher: the log-ratios are not a KL, '
    'and their mean lies below the limit'
  },
  'digi_q': {
    'weights.0.SampledRows': 'rows of the world are all sampled: recorded ones '
    'teach only its critics'
  },
  'ppdpp': {
    'shaping.0.TurnRewards': 'turns cost equally much: standardised returns '
    'rise in equal steps, as discounted ones of a reward at the end do'
  },
  **dict.fromkeys(
    ('poad', 'starpo'),
    {'losses.2.EntropyBonus': 'below 0.1% of the gradient at its coefficient'},
  ),
}


def place_of(name: str) -> Place:
  """The place of a method of WHERE or VARIANTS."""
  return VARIANTS[name] if name in VARIANTS else WHERE[name]


def named(name: str) -> str:
  """The world in which a method acts, or why there is none."""
  if name in NOWHERE:
    return f'no world: {NOWHERE[name]}'
  return f'`{configuration.file_of("configs", place_of(name).world)}`'


def baseline_of(name: str) -> str:
  """The baseline of a method, or of a variant not in `ALONE` its method."""
  method, variant, _ = name.partition('@')
  if variant and name not in ALONE:
    return method
  return configuration.baseline_of(method)
