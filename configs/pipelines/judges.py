"""The cost of a judge of 80%: GRPO with judges that err at known rates.

The policy learns from 150 steps of supervised training, then from 60 iterations
of GRPO in which the verdict of a scripted judge is the reward: right always, or
wrong in 10, 20, 30 and 40% of the cases; wrong in 20%, with the majority of
five votes; wrong in 20% of the right responses only, or of the wrong ones; or
fooled by the right digits in any order, with the rubric that it has or revised
every ten iterations (MPO).
Command: python -m experiments.pipeline --pipeline=judges --workdir=runs/judges
Cost: about five minutes of a CPU core.
Claims: accuracy falls with the rate of errors; five votes regain a part of it;
  a judge that is fooled lowers accuracy, and revisions of the rubric end that.
Expected: see experiments/papers/worlds/README.md.
Source of the revision: "Toward Evaluative Thinking: Meta Policy Optimization
  with Evolving Reward Models", 2025, by a digest of its code; there a model
  revises the rubric, here a script that knows the rule.
"""

from experiments.pipelines import family_stages
from experiments.pipelines.stages import Stage

ITERATIONS = 60
# The first lines of the judge's template.
JUDGES = {
  'exact': 'error 0.0',
  'error_10': 'error 0.1',
  'error_20': 'error 0.2',
  'error_30': 'error 0.3',
  'error_40': 'error 0.4',
  'votes': 'error 0.2\\nvotes 5',
  'misses': 'error 0.2 0.0',
  'accepts': 'error 0.0 0.2',
  'fooled': 'error 0.0\\nfooled',
  'revised': 'error 0.0\\nfooled',
}
_REVISION = (
  '--set=judges.0.revision=Revision('
  "function='rl_jax.worlds.fallible_judge:revised', every=10, samples=20)"
)


def _trained(name: str, head: str) -> Stage:
  text = (
    f'{head}\\n{{{{rubric}}}}\\nTask: {{{{prompt}}}}\\n'
    'Response: {{response}}\\n'
  )
  return Stage(
    name=name,
    flags=(
      *('--config=configs/worlds/judged.py', '--method=grpo@no_kl'),
      *('--workdir={out}', '--set=model.path={warm}'),
      f"--set=judges.0.template='{text}'",
      f'--set=iterations={ITERATIONS}',
      *((_REVISION,) if name == 'revised' else ()),
    ),
  )


def get_stages() -> tuple[Stage, ...]:
  """A start, and a policy for each judge."""
  trained = (_trained(name, head) for name, head in JUDGES.items())
  return (family_stages.WARM, *trained)
