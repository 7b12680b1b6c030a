"""W-DPO: pairs weigh by how much better their steps are.

Paper: "StepORLM: A Self-Evolving Framework with Generative Process Supervision
  for Operations Research Language Models", 2025.
Change: against online DPO, samples are ranked by the outcome and then by a
  process score; pairs of equal outcome weigh the difference of their process
  scores.
Defaults: beta 0.1 (of DPO; unverified there). The process score is a reward
  component, here the format; that of a process model is one by name. With a
  generative process model that is trained between rounds:
  configs/pipelines/step_orlm.py.
Pieces: PairLoss(score=LogRatio(beta=0.1, length='sum'),
  link=Sigmoid(label_smoothing=0.0, gamma=0.0), coef=1.0); TokenMean();
  OutcomeThenProcess(outcome='outcome', process='format')
Headline: unverified.
Evidence: reconstructed (the weight; that there is one is from a secondary
  source).
Command: python -m experiments.train --config=configs/worlds/stepped.py
  --method=w_dpo --set=method.pairs.process=steps
  --set=model.path=runs/chain_warm
"""

from rl_jax.method import Method
from rl_jax.pieces import preferences as pref
from rl_jax.pieces.aggregation import TokenMean


def get_method() -> Method:
  """All pairs of a group, a frozen reference."""
  return Method(
    losses=(pref.PairLoss(score=pref.LogRatio(), link=pref.Sigmoid()),),
    aggregation=TokenMean(),
    pairs=pref.OutcomeThenProcess(),
  )
