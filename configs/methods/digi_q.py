"""Digi-Q: critics learn from records, the policy from the best of N samples.

Paper: Bai et al., "Digi-Q: Learning Q-Value Functions for Training
  Device-Control Agents", 2025.
Change: against REINFORCE, no reward of a sample is read: two critics of states
  and two of actions learn by temporal differences from recorded episodes, and
  the sample of a group (N = rollout.group_size actions in a state) whose
  max Q - max V is largest is imitated if that exceeds the threshold. Needs
  model.value_head=True and model.num_values=4.
Defaults: threshold 0.1 (0.05 for web shopping), gamma 0.95 (a script; 0.9 in
  the trainer), targets of slow critics (tau 0.1: a decay of 0.9).
  digi_q@group_means has the task's reward for Q and the group's mean for V,
  without critics.
Pieces: TwinAdvantage(); BestAdvantage(threshold=0.1); Reinforce();
  TwinCritics(); SampledRows(weighs=('policy',)); SeqMeanTokenSum();
  TwinTargets(gamma=0.95, decay=0.9)
Headline: +21.2% over the best offline method before it (Android-in-the-Wild).
Evidence: verified in code (DigiRL-agent/digiq trainer.py, by digest).
Paper and code: there critics read frozen features of a large model; here they
have separate layers (model.critic=own). Slow copies move after every
  iteration, there after every step. V regresses on the recorded action, there
  on a sampled one.
Command: python -m experiments.train --config=configs/worlds/logged_episodes.py
  --method=digi_q --set=model.path=runs/weak --workdir=runs/critics
The critics; then the policy as in configs/pipelines/digi_q.py, or both at once
with rollout.recorded_prompts below rollout.num_prompts.
"""

from rl_jax.method import Method
from rl_jax.pieces import credit, losses, weights
from rl_jax.pieces.aggregation import SeqMeanTokenSum

BASELINE = 'reinforce'  # what influence compares it with
VARIANTS = {
  'group_means': (
    'credit.TwinAdvantage=GroupCenter()',
    'losses.TwinCritics=null',
    'value_target=null',
  ),
}


def get_method() -> Method:
  """Records for the critics, one sample of a prompt at most for the policy."""
  return Method(
    credit=(credit.TwinAdvantage(), credit.BestAdvantage()),
    value_target=credit.TwinTargets(decay=0.9),
    losses=(losses.Reinforce(), losses.TwinCritics()),
    weights=(weights.SampledRows(weighs=('policy',)),),
    aggregation=SeqMeanTokenSum(),
  )
