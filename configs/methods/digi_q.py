"""Digi-Q: likelihood of the best of N samples, where it is better by enough.

Paper: Bai et al., "Digi-Q: Learning Q-Value Functions for Training
  Device-Control Agents", 2025.
Change: against REINFORCE, the advantage is 1 on the best sample of a group
  whose reward exceeds the group's mean by the threshold, and 0 on others.
Defaults: threshold 0.1 (0.05 for web shopping).
Pieces: BestAdvantage(threshold=0.1); Reinforce(); SeqMeanTokenSum()
Headline: +21.2% over the best offline method before it (Android-in-the-Wild).
Evidence: verified in code (DigiRL-agent/digiq trainer.py, by digest) for this
  step alone.
Paper and code: there rewards of samples are Q - V of critics that learn by TD
  from recorded actions; here those of the task or of reward_models.
Command: python -m experiments.train --config=configs/logged_moves.py
  --method=digi_q --workdir=runs/moves
"""

from rl_jax.method import Method
from rl_jax.pieces import credit, losses
from rl_jax.pieces.aggregation import SeqMeanTokenSum

BASELINE = 'reinforce'  # what influence compares it with


def get_method() -> Method:
  """One sample of a prompt at most."""
  return Method(
    credit=(credit.BestAdvantage(),),
    losses=(losses.Reinforce(),),
    aggregation=SeqMeanTokenSum(),
  )
