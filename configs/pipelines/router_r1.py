"""Router-R1: two partners of different price, and a gate for the form.

An untrained policy learns 60 iterations of PPO to name a digit that a fast
partner often and a slow one always knows: with a share alpha of the reward for
being cheap, 0, 0.3, 0.6 and 0.9, with the gate, and 0.6 without it.
Command: python -m experiments.pipeline --pipeline=router_r1
  --workdir=runs/router_r1
Cost: about two minutes of a CPU core.
Claims: the cost of an episode falls from alpha 0 to alpha 0.9, and actions of a
  wrong form are rarer with the gate than without it, by the means of the last
  ten iterations.
Expected: see experiments/papers/worlds/README.md.
Source: "Router-R1: Teaching LLMs Multi-Round Routing and Aggregation via
  Reinforcement Learning", 2025; partners are scripted tools, and sizes are
  ours.
"""

from experiments.pipelines.stages import Stage

ALPHAS = {'free': 0.0, 'low': 0.3, 'middle': 0.6, 'high': 0.9}


def get_stages() -> tuple[Stage, ...]:
  """A policy for each alpha, and one without the gate."""
  arms = {name: ('router_r1@gated', alpha) for name, alpha in ALPHAS.items()}
  arms['ungated'] = ('router_r1', ALPHAS['middle'])
  return tuple(
    Stage(
      name=name,
      flags=(
        *('--config=configs/worlds/priced_tools.py', '--workdir={out}'),
        *(f'--method={method}', '--set=model.value_head=True'),
        f'--set=method.shaping.CostReward.alpha={alpha}',
      ),
    )
    for name, (method, alpha) in arms.items()
  )
