"""EPO: likelihood of turns weighted by their return over the episode's largest.

Paper: Liu et al., "EPO: Explicit Policy Optimization for Strategic Reasoning in
  LLMs via Reinforcement Learning", 2025.
Change: against REINFORCE, the weight of a turn is its discounted return over
  the largest of its episode; tokens are averaged in turns, turns in episodes.
Defaults: gamma 0.99.
Pieces: TurnRewards(); EpisodeNormalised(gamma=0.99); Reinforce();
  SeqMeanTokenSum()
Headline: state of the art on SOTOPIA, WebShop and ALFWorld at publication
  (numbers unverified).
Evidence: verified in code (lxqpku/EPO), which is supervised training on
  recorded rows, with rewards of turns from a language model.
Paper and code: rewards of turns are those of the environment here: in
  configs/worlds/haggling.py the component `score`, 1 for a turn that a judge
  would mark, else the outcome.
Command: python -m experiments.train --config=configs/worlds/haggling.py
  --method=epo --set=model.path=runs/haggling_start
  --set="task.reward_weights={'score': 1.0}"
"""

from rl_jax.method import Method
from rl_jax.pieces import credit, losses, shaping
from rl_jax.pieces.aggregation import SeqMeanTokenSum

BASELINE = 'reinforce'  # what influence compares it with


def get_method() -> Method:
  """Returns of turns, normalised in each episode, without a baseline."""
  return Method(
    shaping=(shaping.TurnRewards(),),
    credit=(credit.EpisodeNormalised(),),
    losses=(losses.Reinforce(),),
    aggregation=SeqMeanTokenSum(),
  )
