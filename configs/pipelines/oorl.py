"""OORL: REINFORCE++ on samples, and groups of equivalent responses of data.

After 300 steps of supervised training, 40 iterations with 64 groups of four
samples and 16 recorded groups of two right chains, which differ by a check of
the last step only, and two wrong ones. `oorl` has both losses, with the
coefficient of the paper, `oorl_large` with a hundred times that, `untied` is
that without the penalty on the variance of the winners; `samples` has the
coefficient 0, which is REINFORCE++ as the recorded rows are not trained then.
Command: python -m experiments.pipeline --pipeline=oorl --workdir=runs/oorl
Cost: about three minutes of a CPU core.
Claims: more samples on held-out prompts are right with `oorl` than with
  `samples`; the variance of the winners' log-ratios is smaller in the last
  iteration with `oorl_large` than with `untied`.
Expected: see experiments/papers/worlds/README.md.
Source: "On-Policy Optimization with Group Equivalent Preference for
  Multi-Programming Language Understanding", 2025, by a digest; there programs
  and their intermediate representations are the groups. Sizes are ours.
"""

from experiments.pipelines import chain_stages
from experiments.pipelines.stages import Stage

_CONFIG = (
  '--config=configs/worlds/equivalent_chains.py',
  *('--method=gepo@oorl_groups', '--workdir={out}', '--set=model.path={warm}'),
)
KINDS = {
  'oorl': (0.01, 1.0),
  'oorl_large': (1.0, 1.0),
  'untied': (1.0, 0.0),
  'samples': (0.0, 1.0),
}


def get_stages() -> tuple[Stage, ...]:
  """A start, and a policy of each kind."""
  trained = (
    Stage(
      name=name,
      flags=(
        *_CONFIG,
        f'--set=method.losses.GroupContrast.coef={coef}',
        f'--set=method.losses.GroupContrast.variance={variance}',
      ),
    )
    for name, (coef, variance) in KINDS.items()
  )
  return (chain_stages.WARM, *trained)
