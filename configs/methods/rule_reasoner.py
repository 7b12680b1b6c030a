"""RuleReasoner: domains that are solved less are drawn more often.

Paper: Liu et al., "RuleReasoner: Reinforced Rule-based Reasoning via
  Domain-aware Dynamic Sampling", 2025.
Change: against GRPO without KL, the shares of the domains of prompts are a
  softmax of how far their recent mean rewards lie below a goal.
Defaults: memory of 4 batches, new shares every 8, temperature 0.3, goal 1
  (train_mix.sh); clip 0.2.
Pieces: GroupCenter(); GroupScale(eps=1e-06, ddof=1); PPOClip(clip_low=0.2,
  clip_high=0.2); SeqMeanTokenMean(); DomainGap(domains=2, memory=4, every=8,
  tau=0.3, goal=1.0, by='place', sizes=())
Headline: 4.1 points over o1 on eight tasks, 10.4 on three others.
Evidence: verified in code (bigai-nlco/RuleReasoner ray_trainer.py).
Paper and code: the code adds 0.1 to all gaps, which a softmax does not see, and
  forgets domains that the memory lacks; here they count as unsolved. Domains
  are levels of tasks.Levels, or with rule_reasoner@parts the parts of a
  tasks.Mixture.
Command: python -m experiments.train --config=configs/worlds/graded.py
  --method=rule_reasoner --set=method.selector.domains=3
  --set=model.path=runs/explore_warm
rule_reasoner@fixed is the control: the same with the shares of the mixture.
"""

from rl_jax.method import Method
from rl_jax.pieces import credit, losses, selection
from rl_jax.pieces.aggregation import SeqMeanTokenMean

BASELINE = 'grpo@no_kl'  # what influence compares it with

VARIANTS = {
  'parts': ('selector.by=part',),
  'fixed': ('selector=null',),
}


def get_method() -> Method:
  """GRPO on domains by their gaps."""
  return Method(
    credit=(credit.GroupCenter(), credit.GroupScale()),
    losses=(losses.PPOClip(),),
    aggregation=SeqMeanTokenMean(),
    selector=selection.DomainGap(),
  )
