"""Stages on `configs/worlds/brief.py`, from the start of its tables."""

from experiments.pipelines.stages import Stage

ITERATIONS = 12
RATE = 1.5e-4  # of all methods of its tables
# The command of experiments/papers/worlds/README.md.
WARM = Stage(
  name='warm',
  binary='sft',
  flags=(
    *('--config=configs/worlds/chain.py', '--set=task.num_train=100000'),
    *('--set=task.guesses=0.4', '--set=task.slips=0.12'),
    *('--set=task.hints=0.25', '--steps=1500', '--learning_rate=2e-3'),
    *('--max_prompt_tokens=32', '--max_response_tokens=52'),
    *('--evaluate_every=250', '--out={out}'),
  ),
)
# POAD and NLPO as in the tables: steps are marked, and the vocabulary is small.
SETS = {
  'poad': (
    '--set=method.credit.ActionGAE.segments=extras',
    '--set=method.value_target.segments=extras',
  ),
  'nlpo': ('--set=method.logits.LaggedSupport.min_percent=10',),
  # Prompts with hints are longer, and half of a solution is longer still.
  'guide_grpo': ('--set=rollout.max_prompt_tokens=24',),
  'ghpo': (
    '--set=rollout.max_prompt_tokens=24',
    '--set=method.rollout.shares=(0.25,)',
  ),
}


def trained(
  name: str, method: str, *flags: str, iterations: int = ITERATIONS
) -> Stage:
  """A method at the rate of the tables, judged at its end as they are."""
  return Stage(
    name=name,
    flags=(
      *('--config=configs/worlds/brief.py', f'--method={method}'),
      *('--workdir={out}', '--set=model.path={warm}'),
      f'--set=optimizer.learning_rate={RATE}',
      *(f'--set=iterations={iterations}', '--set=evaluation.num_samples=4'),
      f'--set=evaluation.every={iterations}',
      *SETS.get(method.partition('@')[0], ()),
      *flags,
    ),
  )
