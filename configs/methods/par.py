"""PAR: the reward is the probability of beating reference responses.

Paper: Fu et al., "Reward Shaping to Mitigate Reward Hacking in RLHF", 2025.
Change: against GRPO, the raw reward r becomes mean_j sigmoid(r - ref_j) over M
  reference responses. Needs extras['reference_reward_NM'] (see
  rl_jax/pieces/row_inputs.py).
Defaults: k 1, 0.01 a token off beyond 300 tokens, 10 references (1 suffices),
  KL 0.005 in the reward for PPO; here as a loss with GRPO. Its siblings are
  variants: --method=par@tanh; those named scalar_ have no references. minmax is
  affine, and so GRPO on the raw reward.
Pieces: ReferenceSigmoid(k=1.0, link='sigmoid', shift=0.0, references=True,
  length_coef=0.01, free_tokens=300.0); GroupCenter(); GroupScale(eps=1e-06,
  ddof=1); PPOClip(clip_low=0.2, clip_high=0.2); KLPenalty(coef=0.005,
  estimator='k3'); SeqMeanTokenMean()
Headline: AlpacaEval 2.0 win rate at least 5 points above other shapings.
Evidence: verified in code (PorUna-byte/PAR reward_shaper.py).
Paper and code: the GRPO trainer's KL has the log-ratio's sign flipped; here k3.
Command: python -m experiments.train --config=configs/worlds/boxes.py
  --method=par --set=method.shaping.ReferenceSigmoid.k=4
"""

from rl_jax.method import Method
from rl_jax.pieces import credit, losses, regularizers, shaping
from rl_jax.pieces.aggregation import SeqMeanTokenMean

_SCALAR = ('shaping.ReferenceSigmoid.references=False',)
_IDENTITY = (*_SCALAR, "shaping.ReferenceSigmoid.link='identity'")
VARIANTS = {
  'centred': ("shaping.ReferenceSigmoid.link='identity'",),
  'tanh': ("shaping.ReferenceSigmoid.link='tanh'",),
  'arctan': ("shaping.ReferenceSigmoid.link='arctan'",),
  'polynomial': ("shaping.ReferenceSigmoid.link='polynomial'",),
  'scalar_sigmoid': _SCALAR,
  'scalar_tanh': (*_SCALAR, "shaping.ReferenceSigmoid.link='tanh'"),
  'scalar_arctan': (*_SCALAR, "shaping.ReferenceSigmoid.link='arctan'"),
  'scalar_polynomial': (*_SCALAR, "shaping.ReferenceSigmoid.link='polynomial'"),
  'scalar_ceiling': (
    *_IDENTITY,
    'shaping.ReferenceSigmoid.ceiling=1.0',  # ours
  ),
  'sgfc': ('shaping.ReferenceSigmoid.shift=3.0',),
  'meanstd': (*_IDENTITY, 'shaping+=RunningScale(center=True)'),
  # Within one deviation of the mean, up to an affine map.
  'clip': (*_IDENTITY, 'shaping+=RunningScale(center=True, clip=1.0)'),
  'lsc': (
    "shaping.ReferenceSigmoid.link='log_sigmoid'",
    'shaping.ReferenceSigmoid.quantile=0.85',
  ),
}


def get_method() -> Method:
  """GRPO on bounded rewards."""
  return Method(
    shaping=(shaping.ReferenceSigmoid(),),
    credit=(credit.GroupCenter(), credit.GroupScale()),
    losses=(losses.PPOClip(), regularizers.KLPenalty(coef=5e-3)),
    aggregation=SeqMeanTokenMean(),
  )
