"""QWeb: Q-learning of turns, by which a cloned policy is tilted.

Paper: Gur et al., "Learning to Navigate the Web", 2019.
Change: against PPO with rewards of turns, no policy gradient: two Q of every
  token are fitted to r + gamma max_v Q(s', v) of a target copy, an action's
  tokens one after another, and samples are drawn by pi(v) exp(beta min(Q_1,
  Q_2)(v)). pi is the policy that the run begins with; no loss reads it, but its
  layers learn the values. The maximum is over tokens that are drawn now and
  then, as a page offers only its elements. Needs model.value_head=True and
  model.num_values=1 + 2 V, which the configuration of the command has.
Defaults: gamma 0.995 a token, 0.99 for an action of two, beta 4, tokens of 5%
  of the likeliest, decay 0.8; all are ours.
Pieces: TurnRewards(); ActionRegression(); ActionValueTilt(beta=4.0);
  TokenMean(); MaxTargets(gamma=0.995, least_percent=5, decay=0.8)
Headline: 100% on several MiniWoB tasks (abstract).
Evidence: reconstructed from the abstract and patent claims.
Paper and code: there networks for an element, for click or type, and for the
  field whose value is typed are summed to Q; transitions are replayed; and the
  network reads pages without a start that was cloned.
Command: python -m experiments.train --config=configs/worlds/web_form.py
  --method=qweb --set=model.path=runs/inet/clone --workdir=runs/qweb
"""

from rl_jax.method import Method
from rl_jax.pieces import credit, logits, losses, shaping
from rl_jax.pieces.aggregation import TokenMean

BASELINE = 'ppo'  # what influence compares it with


def get_method() -> Method:
  """Values of tokens, by which the policy is tilted."""
  return Method(
    shaping=(shaping.TurnRewards(),),
    value_target=credit.MaxTargets(gamma=0.995, least_percent=5, decay=0.8),
    losses=(losses.ActionRegression(),),
    logits=(logits.ActionValueTilt(beta=4.0, clip=None),),
    aggregation=TokenMean(),
  )
