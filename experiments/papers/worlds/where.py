"""A world for every method in which it changes what its baseline does."""

import dataclasses


@dataclasses.dataclass(frozen=True)
class Place:
  """world: of configs/. sets: changes of the method, as `--set` without
  `method.`. loop: what it changes is seen in rollouts or draws alone.
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
  'keydoor': 0.0,
  'lookup': 0.0,
  'mismatch': 0.02,
  'modes': 0.0,
  'multiple_choice': 0.0,
  'planned_keydoor': 0.0,
  'points': 0.0,
  'priced_tools': 0.0,
  'returning': 0.02,
  'stale': 0.15,
  'told_keydoor': 0.0,
  'unlabelled': 0.02,
  'windows': 0.02,
}
SAMPLER = {name: 'trainer' for name in DRIFT} | {'mismatch': 'int4'}
_STALE = (
  *('cispo', 'clip_higher', 'dppo_kl', 'dppo_tv', 'dual_clip_grpo', 'gmpo'),
  *('gspo', 'minpro', 'sapo', 'topr', 'vespo', 'luspo', 'kl_cov', 'clip_cov'),
  *('dro', 'nft', 'p3o_v1', 'p3o_v2', 'disco', 'pf_ppo'),
)
_MISMATCH = ('icepop', 'seq_mask_tis', 'tis', 'tis_sequence')
_KEYDOOR = (
  *('epo', 'gigpo', 'ppdpp', 'retroformer', 'salt', 'starpo', 'turn_ppo'),
  'turn_rloo',
)
_MODES = ('a2fm', 'ada_grpo', 'degrpo')
_UNLABELLED = ('empo', 'self_certainty')
_CHAIN = (
  *('adaptive_kl', 'adora', 'apo', 'b_coder', 'balanced_filtering'),
  *('constrained_rlhf', 'copg', 'copo', 'dapo'),
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
  *('gpg', 'grpo', 'lambda_grpo', 'lite_ppo', 'llds'),
  *('nlpo', 'nthr', 'opo', 'pass_at_k_grpo', 'poad', 'ppo', 'rlmt'),
  *('ppo_max', 'reg_grpo', 'reinforce', 'reinforce_plus_plus'),
  *('reinforce_plus_plus_baseline', 'rep_exp', 'riskpo', 'rloo', 'rlprompt'),
  *('seed_grpo', 'thr', 'xrpo'),
  # On pairs among samples.
  *(
    'dno',
    'gepo',
    'irpo',
    'iterative_dpo',
    'mapl',
    'online_dpo',
    'rebel',
    'rso',
  ),
  *('sft', 'spo', 'sppo', 'w_dpo'),
  # On several reward components.
  *('gtalign', 'mo_grpo', 'parrot', 'rluf', 'rm_ensemble', 'rlvr'),
)
_SETS = {
  # The rewards of boxes span 1.4, those of the paper's model several units.
  'par': ('shaping.ReferenceSigmoid.k=4.0',),
  'nlpo': ('logits.LaggedSupport.min_percent=10',),
  # An answer that is right has the format, too.
  'rluf': ('shaping.GatedSum.weights=(0.3,1.0)',),
  'riskpo': ('credit.BundleRisk.bundle=3',),
}
_PLACES = {
  'guide_grpo': Place('chain', loop=True),
  'mopps': Place('chain', loop=True),
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
    ('keydoor', _KEYDOOR),
    ('planned_keydoor', ('hiper',)),
    ('told_keydoor', ('oni',)),
    ('priced_tools', ('duration_ppo', 'otc')),
    ('boxes', ('gui_g1', 'par', 'vision_r1')),
    ('coverage', ('subpo',)),
    ('function_calls', ('toolrl',)),
    ('multiple_choice', ('tw_grpo',)),
    ('points', ('aepo',)),
    ('chain', _CHAIN),
  )
  for name in names
} | _PLACES
_OF_DATA = (
  *(
    'alphapo',
    'annotator_mixture',
    'aot',
    'apo_down',
    'apo_zero',
    'bco',
    'cdpo',
    'cpo',
    'discopop',
  ),
  *('cpo_simpo', 'dpo', 'dpop', 'exo', 'f_sft', 'fdpo', 'hinge_dpo', 'hnpg'),
  *('hypo', 'ipo', 'kto', 'ld_dpo', 'ln_dpo', 'mpo_losses', 'nca', 'orpo'),
  *(
    'reward_augmented_dpo',
    'reward_model',
    'robust_dpo',
    'rpo',
    'simpo',
    'slic',
    'tr_dpo',
    'wpo',
    'd2po',
  ),
  *('aspect_reward_model', 'gc_reward_model', 'ilql', 'process_reward_model'),
)
_AGAINST = (
  *('infalign', 'ipo_md', 'nash_ema', 'nash_md', 'pairwise_rl', 'xpo'),
)
_BESIDE_DATA = ('seppo', 'spin')
_OF_POLICIES = ('r_to_q', 'rto')
NOWHERE = {
  **dict.fromkeys(
    _OF_DATA, 'learns from pairs of data (configs/preferences.py): not measured'
  ),
  **dict.fromkeys(
    _OF_POLICIES, 'reads a DPO policy of a run of its own: not measured'
  ),
  **dict.fromkeys(_BESIDE_DATA, 'reads recorded responses: not measured'),
  **dict.fromkeys(_AGAINST, 'samples an opponent, too: not measured'),
  'sem_dpo': 'reads distances of the data (embed_pairs): not measured',
  'did': 'measures alone, and trains as online_dpo',
  'oprm': 'reads a process model of a run of its own: not measured',
  'spiral': 'compares the roles of a game (configs/kuhn.py): not measured',
  'maxmin': 'the outcome is the smallest component of the chain, as in GRPO',
}
