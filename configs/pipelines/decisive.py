"""The constants that XPO and HyPO call decisive, each at four values.

From one start, supervised training on right sums, XPO samples 80 x 128
responses with optimism (alpha) 0, 1e-5, 1e-3 or 1e-2, and HyPO reads 80 x 32
pairs with a KL on 80 x 64 samples (lambda) of 0, 1e-4, 1e-2 or 1. Without
optimism XPO is DPO against the reference, without KL HyPO is DPO.
Command: python -m experiments.pipeline --pipeline=decisive
  --workdir=runs/decisive
Cost: about five minutes of a CPU core.
Claims: with one of the alphas above 0 more sums are right than without; with
  every lambda above 0 the policy is nearer to the reference on its samples than
  without, the nearer the larger lambda is.
Expected: see experiments/papers/worlds/README.md.
Source: Xie et al., "Exploratory Preference Optimization", 2024; Song et al.,
  "The Importance of Online Data: Understanding Preference Fine-tuning via
  Coverage", 2024.
"""

from experiments.pipelines.stages import Stage

_CONFIG = ('--config=configs/worlds/preferences.py', '--workdir={out}')
ALPHAS = {'none': 0.0, 'published': 1e-5, 'large': 1e-3, 'largest': 1e-2}
LAMBDAS = {'none': 0.0, 'published': 1e-4, 'large': 1e-2, 'largest': 1.0}


def _trained(name: str, *flags: str) -> Stage:
  return Stage(
    name=name,
    flags=(
      *(*_CONFIG, '--set=model.path={warm}', '--set=iterations=80'),
      *('--set=evaluation.every=80', '--set=evaluation.num_samples=4'),
      *('--set=optimizer.learning_rate=3e-4', *flags),
    ),
  )


def get_stages() -> tuple[Stage, ...]:
  """A start, and a policy for each value."""
  warm = Stage(
    name='warm',
    flags=(
      *(*_CONFIG, '--method=sft', '--set=task.form=right'),
      *('--set=rollout.group_size=1', '--set=evaluation.every=300'),
    ),
  )
  xpo = (
    _trained(
      f'xpo_{name}',
      '--method=xpo',
      f'--set=method.losses.Optimism.coef={alpha}',
      '--set=rollout.recorded_prompts=0',
      '--set=rollout.num_prompts=16',
      '--set=rollout.group_size=4',
    )
    for name, alpha in ALPHAS.items()
  )
  hypo = (
    _trained(
      f'hypo_{name}',
      '--method=hypo',
      f'--set=method.losses.SampledKL.coef={coef}',
      '--set=rollout.recorded_prompts=32',
      '--set=rollout.num_prompts=64',
    )
    for name, coef in LAMBDAS.items()
  )
  return (warm, *xpo, *hypo)
