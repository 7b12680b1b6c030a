"""Methods and constants as published: which pieces, with which numbers.

The numbers are those of the papers and releases named in the docstrings of the
pieces and of configs/methods. A change here changes what a method's name means.
"""

import dataclasses

import pytest

# Pieces in order, then those of rollouts and prompts; arguments only where they
# differ from the table below.
METHODS = {
  'a2fm': 'AdaptiveModeReward GroupCenter GroupScale PPOClip SeqMeanTokenMean',
  'ada_grpo': (
    'FormatRarity GroupCenter GroupScale PPOClip KLPenalty SeqMeanTokenMean'
  ),
  'adora': (
    'GroupCenter GroupScale LengthAdvantageScale PPOClip KLPenalty '
    'SeqMeanTokenMean'
  ),
  'aepo': 'RankedAnswers LeaveOneOut PPOClip(clip_high=0.4) TokenMean',
  'apo': (
    'GroupCenter GroupScale(eps=1e-09) LongWrongScale PPOClip '
    'DifficultyKL(aggregation=SeqMeanTokenMean) TokenMean'
  ),
  'aspo': (
    'GroupCenter GroupScale FirstCallBias PPOClip(clip_high=0.28) TokenMean '
    'ZeroVariance'
  ),
  'balanced_filtering': (
    'GroupCenter GroupScale PPOClip KLPenalty SeqMeanTokenMean AccuracyBand'
  ),
  'cispo': 'GroupCenter GroupScale CISPO TokenMean',
  'clip_cov': (
    'GroupCenter GroupScale PPOClip(clip_low=1.0, clip_high=1.0) '
    'ClipCovDrop(clip_low=1.0, clip_high=1.0) TokenMean ZeroVariance'
  ),
  'clip_higher': (
    'GroupCenter GroupScale PPOClip(clip_high=0.28) TokenMean ZeroVariance'
  ),
  'constrained_rlhf': 'Lagrangian PPOClip TokenMean',
  'copg': 'CoPG TokenMean',
  'copo': 'GroupCenter GroupScale ConsistencyClip TokenMean',
  'dapo': (
    'OverlongPenalty GroupCenter GroupScale PPOClip(clip_high=0.28) '
    'TokenMean ZeroVariance'
  ),
  'degrpo': 'GroupCenter PPOClip KLPenalty(aggregation=TokenMean) ControlSplit',
  'direct_advantage': 'GroupCenter StepRegression TokenMean',
  'disco': 'DisCO KLConstraint TokenMean',
  'disco_b': 'DisCO(tau=None) KLConstraint TokenMean',
  'dppo_kl': (
    "GroupCenter GroupScale DPPO(divergence='kl', low=0.05, high=0.05) "
    'TokenMean'
  ),
  'dppo_tv': 'GroupCenter GroupScale DPPO TokenMean',
  'dr_grpo': 'GroupCenter PPOClip SeqMeanTokenSumNorm(length=1024.0)',
  'dro': 'GroupCenter DRO TokenMean',
  'dual_clip_grpo': 'GroupCenter GroupScale PPOClip(dual_clip=3.0) TokenMean',
  'egpo': (
    'GroupCenter GroupScale EntropyShaping PPOClip KLPenalty SeqMeanTokenMean'
  ),
  'empg': 'GroupCenter GroupScale EntropyModulation PPOClip SeqMeanTokenMean',
  'empo': (
    'ClusterFrequency GroupCenter GroupScale(eps=0.0001) PPOClip '
    'SeqMeanTokenMean'
  ),
  'entropy_quantile': (
    'GroupCenter GroupScale PPOClip(clip_high=0.28) EntropyQuantile '
    'TokenMean ZeroVariance'
  ),
  'gdc': 'GDC SeqMeanTokenSum',
  'gmpo': 'GroupCenter GroupScale GMPO SeqMeanTokenMean',
  'gpg': 'NonzeroScale GroupCenter Reinforce TokenMean',
  'grpo': 'GroupCenter GroupScale PPOClip KLPenalty SeqMeanTokenMean',
  'gspo': 'GroupCenter GroupScale GSPO SeqMeanTokenMean',
  'gui_g1': (
    'GroupCenter PPOClip DifficultyWeight SeqMeanTokenSumNorm(length=64.0)'
  ),
  'guide_grpo': 'GroupCenter GroupScale PPOClip SeqMeanTokenMean HintGuided',
  'hapo': (
    'HistoryLength GroupCenter GroupScale PPOClip KLPenalty SeqMeanTokenMean'
  ),
  'icepop': 'GroupCenter GroupScale PPOClip IcePop TokenMean',
  'kl_cov': 'GroupCenter GroupScale KLCov TokenMean ZeroVariance',
  'lite_ppo': 'BatchScale GroupCenter PPOClip TokenMean',
  'llds': 'GroupCenter GroupScale PPOClip LLDS KLPenalty TokenMean',
  'luspo': 'GroupCenter GroupScale GSPO SeqMeanTokenSum',
  'minpro': 'GroupCenter GroupScale MinPRO TokenMean',
  'mopps': (
    'GroupCenter GroupScale PPOClip(clip_high=0.28) EntropyBonus TokenMean '
    'BetaPosterior'
  ),
  'nft': 'NFT SeqMeanTokenSumNorm(length=1000.0) ZeroVariance',
  'nlpo': (
    'KLInReward(coef=0.1) GAE(gamma=0.99) Whiten PPOClip '
    'ValueClip(clip=1000000.0) LaggedSupport TokenMean '
    'LambdaReturn(gamma=0.99)'
  ),
  'nthr': (
    'GroupCenter GroupScale NegativeTokenDamping PPOClip SeqMeanTokenMean'
  ),
  'opo': 'LengthWeightedCenter Reinforce SeqMeanTokenSum',
  'p3o_v1': "KLInReward(coef=0.1, level='sequence') P3O TokenMean",
  'p3o_v2': (
    "KLInReward(coef=0.1, level='sequence') P3O(variant='joint') TokenMean"
  ),
  'par': (
    'ReferenceSigmoid GroupCenter GroupScale PPOClip KLPenalty(coef=0.005) '
    'SeqMeanTokenMean'
  ),
  'pass_at_k_grpo': 'GroupScale BestOfGroup PPOClip TokenMean',
  'pf_ppo': (
    'KLInReward GAE Whiten PPOClip ValueClip RankFilter TokenMean LambdaReturn'
  ),
  'poad': (
    'ActionGAE Whiten(ddof=0) PPOClip ValueClip EntropyBonus(coef=0.01) '
    'TokenMean ActionReturn'
  ),
  'ppo': 'KLInReward GAE Whiten PPOClip ValueClip TokenMean LambdaReturn',
  'ppo_max': (
    'RunningScale KLInReward GAE PPOClip ValueClip TokenMean LambdaReturn'
  ),
  'reg_grpo': (
    'GroupCenter GroupScale(ddof=0) GroupRegression KLPenalty TokenMean'
  ),
  'reinforce': 'Reinforce SeqMeanTokenSum',
  'reinforce_plus_plus': 'KLInReward DiscountedReturn Whiten PPOClip TokenMean',
  'reinforce_plus_plus_baseline': 'GroupCenter Whiten PPOClip TokenMean',
  'rep_exp': 'EllipticalBonus GroupCenter GroupScale PPOClip SeqMeanTokenMean',
  'riskpo': 'BundleRisk PPOClip TokenMean',
  'rloo': 'LeaveOneOut Reinforce SeqMeanTokenSum',
  'sapo': 'GroupCenter GroupScale SAPO SeqMeanTokenMean',
  'seed_grpo': 'GroupCenter SemanticEntropyScale PPOClip TokenMean',
  'self_certainty': (
    'SelfCertainty GroupCenter GroupScale PPOClip KLPenalty SeqMeanTokenMean'
  ),
  'seq_mask_tis': 'GroupCenter GroupScale PPOClip SequenceMask TokenMean',
  'spo_chain': 'SegmentDifference PPOClip TokenMean SegmentValues',
  'subpo': 'SetGains Reinforce SeqMeanTokenSum',
  't_ppo': (
    'ExtendedGAE Whiten PPOClip FinishedValue CurrentWindow TokenMean '
    'LambdaReturn(lam=1.0)'
  ),
  'thr': 'GroupCenter GroupScale TokenHiddenReward PPOClip SeqMeanTokenMean',
  'tis': 'GroupCenter GroupScale PPOClip TruncatedImportance TokenMean',
  'tis_sequence': (
    "GroupCenter GroupScale PPOClip TruncatedImportance(level='sequence') "
    'TokenMean'
  ),
  'topr': 'Affine(scale=2.0, offset=-1.0) TOPR SeqMeanTokenMean',
  'tw_grpo': (
    'GroupCenter GroupScale(eps=0.0001) PPOClip GroupDivergenceWeight TokenMean'
  ),
  'vespo': 'GroupCenter GroupScale VESPO SeqMeanTokenSum',
  'xrpo': 'GroupCenter GroupScale NoveltySharpening PPOClip SeqMeanTokenMean',
}

# Defaults of the pieces; those without are not listed.
DEFAULTS = {
  'AccuracyBand': {'low': 0.25, 'high': 0.75},
  'ActionGAE': {'gamma': 0.95, 'lam': 0.95, 'segments': 'turns'},
  'ActionReturn': {'gamma': 0.95, 'lam': 0.95, 'segments': 'turns'},
  'AdaptiveModeReward': {'alpha': 2.0},
  'Affine': {'scale': 1.0, 'offset': 0.0},
  'BatchScale': {'eps': 1e-06, 'ddof': 1},
  'BundleRisk': {
    'bundle': 5,
    'low': 0.2,
    'high': 0.8,
    'tail': 1.5,
    'rate': 0.1,
    'eps': 1e-06,
    'credit': 'share',
    'scale': True,
    'constant': False,
  },
  'BetaPosterior': {
    'candidate_ratio': 8,
    'target': 0.5,
    'low': 0.3,
    'high': 0.7,
    'decay': 0.5,
    'prior_success': 1.0,
    'prior_failure': 1.0,
    'rule': 'nearest',
  },
  'CISPO': {'clip_low': 0.2, 'clip_high': 0.28},
  'ClipCovDrop': {'fraction': 0.0002, 'low': 1.0, 'high': 5.0},
  'CoPG': {'coef': 0.1},
  'ConsistencyClip': {
    'gamma': 20.0,
    'rho': 1.5,
    'eps': 1e-06,
    'clip_low': 0.2,
    'clip_high': 0.2,
  },
  'ControlSplit': {'coef': 0.001},
  'DPPO': {'divergence': 'tv', 'low': 0.15, 'high': 0.15, 'ratio_limit': 20.0},
  'DRO': {'coef': 1.0},
  'DifficultyKL': {'coef': 0.001, 'correct_above': 0.5},
  'DisCO': {'tau': 10.0, 'threshold': 0.5, 'score': 'logp'},
  'DiscountedReturn': {'gamma': 1.0},
  'EllipticalBonus': {
    'coef': 0.01,
    'ridge': 0.01,
    'correct_above': 0.5,
    'kind': 'leverage',
  },
  'EntropyBonus': {'coef': 0.001},
  'EntropyModulation': {
    'k': 1.0,
    'k_future': 1.0,
    'zeta': 0.1,
    'eps': 1e-08,
    'segments': 'turns',
  },
  'EntropyQuantile': {'fraction': 0.2},
  'EntropyShaping': {'coef': 0.4, 'alpha': 2.0, 'span': 'response'},
  'ExtendedGAE': {'gamma': 1.0, 'lam': 0.95},
  'FinishedValue': {'coef': 0.5},
  'FirstCallBias': {'coef': -2.0, 'limit': 0.7, 'correct_above': 0.5},
  'FormatRarity': {'total_steps': 100.0},
  'GAE': {'gamma': 1.0, 'lam': 0.95},
  'GDC': {'target': 'constraint', 'temperature': 1.0, 'normalize': False},
  'GMPO': {'log_clip_low': 0.4, 'log_clip_high': 0.4},
  'GSPO': {'clip_low': 0.0003, 'clip_high': 0.0004},
  'GroupDivergenceWeight': {'alpha': 1.7, 'eps': 1e-08},
  'GroupRegression': {'eps': 0.01},
  'GroupScale': {'eps': 1e-06, 'ddof': 1},
  'HintGuided': {'solved_above': 0.5},
  'HistoryLength': {
    'weight': 1.0,
    'floor': 0.7,
    'tau': 0.1,
    'correct_above': 0.5,
    'shape': 'cosine',
  },
  'IcePop': {'low': 0.5, 'high': 5.0},
  'KLConstraint': {'coef': 1000.0, 'limit': 0.0001},
  'KLCov': {'coef': 1.0, 'fraction': 0.002},
  'KLInReward': {'coef': 0.01, 'estimator': 'k1', 'level': 'token'},
  'KLPenalty': {'coef': 0.001, 'estimator': 'k3'},
  'LLDS': {'coef': 0.2, 'gate': 'action'},
  'LaggedSupport': {'p': 0.9, 'min_tokens': 100, 'period': 5},
  'Lagrangian': {
    'components': ('outcome', 'format'),
    'thresholds': (0.9, 0.9),
    'squash': 'sigmoid',
    'learning_rate': 0.1,
    'momentum': 0.1,
    'max_gradient': 0.5,
    'eps': 1e-08,
  },
  'LambdaReturn': {'gamma': 1.0, 'lam': 0.95},
  'LengthAdvantageScale': {
    'scale': 0.1,
    'correct_above': 0.5,
    'max_tokens': 3900.0,
  },
  'LongWrongScale': {'growth': 1e-05, 'correct_above': 0.5},
  'MinPRO': {'clip_low': 0.2, 'clip_high': 0.28, 'form': 'score'},
  'NFT': {
    'negative_weight': 1.0,
    'positive_floor': 0.0,
    'negative_floor': 1.0,
    'threshold': 0.5,
    'normalize': 1,
  },
  'NegativeTokenDamping': {'beta': 1.0, 'correct_above': 0.5},
  'NoveltySharpening': {'coef': 2.5, 'limit': 0.5, 'correct_above': 0.5},
  'OverlongPenalty': {
    'max_tokens': 20480.0,
    'buffer_tokens': 4096.0,
    'coef': 1.0,
  },
  'P3O': {'variant': 'separate', 'clip_low': 0.2, 'clip_high': 0.2},
  'PPOClip': {'clip_low': 0.2, 'clip_high': 0.2},
  'RankFilter': {'best': 1.0, 'middle': 0.0, 'worst': 1.0},
  'RankedAnswers': {'format': 1.0},
  'ReferenceSigmoid': {'k': 1.0, 'length_coef': 0.01, 'free_tokens': 300.0},
  'RunningScale': {'center': False, 'eps': 1e-08},
  'SAPO': {'positive_temperature': 1.0, 'negative_temperature': 1.05},
  'SegmentValues': {
    'samples': 4,
    'interval': 5,
    'max_cuts': 8,
    'threshold': 0.9,
  },
  'SelfCertainty': {'coef': 1.0},
  'SemanticEntropyScale': {
    'alpha': 0.0417,
    'estimator': 'likelihood',
    'scale': 'reciprocal',
  },
  'SequenceMask': {'low': 0.5, 'high': 5.0},
  'SetGains': {'coef': 1.0},
  'StepRegression': {'coef': 0.01},
  'TOPR': {
    'positive_low': 1.0,
    'positive_high': 1.0,
    'negative_low': 0.0,
    'negative_high': 1.0,
    'denominator': 'old',
  },
  'TokenHiddenReward': {'direction': 0.1, 'beta': 1.0, 'correct_above': 0.5},
  'TruncatedImportance': {'limit': 2.0, 'level': 'token', 'normalize': False},
  'VESPO': {
    'positive_power': 2.0,
    'positive_decay': 3.0,
    'negative_power': 3.0,
    'negative_decay': 2.0,
  },
  'ValueClip': {'coef': 0.5, 'clip': 0.2},
  'Whiten': {'eps': 1e-08, 'ddof': 1},
}


def described(piece, found):
  """Class(argument=value); adds the defaults of the class to `found`."""
  fields = dataclasses.fields(piece)
  found[type(piece).__name__] = {
    field.name: field.default
    for field in fields
    if isinstance(field.default, (bool, int, float, str, tuple))
    and field.default != ()
  }
  words = []
  for field in fields:
    value = getattr(piece, field.name)
    if dataclasses.is_dataclass(value):
      words.append(f'{field.name}={described(value, found)}')
    elif value != field.default:
      words.append(f'{field.name}={value!r}')
  return type(piece).__name__ + (f'({", ".join(words)})' if words else '')


@pytest.mark.parametrize('name', sorted(METHODS))
def test_method_is_the_published_one(toy, name):
  """Pieces and constants, exactly."""
  method, found = toy.get_method(name), {}
  pieces = [piece for _, piece in method.pieces()]
  pieces += [p for p in (method.rollout, method.selector) if p is not None]
  assert ' '.join(described(p, found) for p in pieces) == METHODS[name]
  assert {k: v for k, v in found.items() if v} == {
    k: DEFAULTS[k] for k in found if k in DEFAULTS
  }
