"""Process reward model: a value head learns which steps are right.

Paper: Zhang et al., "The Lessons of Developing Process Reward Models in
  Mathematical Reasoning", 2025.
Change: against the reward model of pairs, every step of a response has a label
  of the data, and the value after its last token is trained on it.
Defaults: hard labels, threshold 0, steps after the first wrong one left out
  (paper); its head has two layers: --set=model.value_layers=2. Labels by Monte
  Carlo, by a judge and by both: experiments.papers.worlds.step_labels. F1 of
  the first error and the best of n: experiments.evaluate_reward --steps.
  process_reward_model@every_token is the model of OPRM: all tokens of a step
  have its label, and steps after a wrong one count.
Pieces: StepLabels(kind='hard', threshold=0.0, truncate=True,
  every_token=False); TokenMean()
Headline: unverified.
Evidence: read in paper (by a digest).
Measured: on the start of configs/worlds/chain.py, 2,400 responses of 600
  prompts, 250 iterations from that start, 1,200 responses of 150 held-out
  prompts, seeds 0 and 1. First errors by Monte Carlo are exact in 64%, by a
  judge that mistakes each tenth verdict in 76%, of the 54% on which both agree
  in 95%. F1 of exact labels 0.64 and 0.63, judge 0.59 and 0.62, Monte Carlo
  0.54 and 0.55, consensus 0.51 and 0.53: contrary to the paper, on about half
  of the rows. Best of 8 is 0.19 to 0.32 with any labels and reduction, the mean
  of all 0.25: none of these models chooses.
Command: python -m experiments.train --config=configs/worlds/preferences.py
  --method=process_reward_model --set="task=PreferenceRows(path='steps.jsonl')"
  --set=rollout.group_size=1
"""

from rl_jax.method import Method
from rl_jax.pieces import losses
from rl_jax.pieces.aggregation import TokenMean

BASELINE = 'reward_model'  # what influence compares it with
VARIANTS = {
  'every_token': (
    'losses.StepLabels.every_token=True',
    'losses.StepLabels.truncate=False',
  )
}


def get_method() -> Method:
  """Steps with labels from data; needs model.value_head."""
  return Method(losses=(losses.StepLabels(),), aggregation=TokenMean())
