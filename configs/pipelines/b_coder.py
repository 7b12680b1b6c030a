"""B-Coder: three stages, and the best of sampled programs by its values.

A policy is cloned from recorded programs, most of which have bugs; a critic
learns on it for 40 iterations, then logits and a residual of the critic for 20.
Of fresh prompts 16 programs each are drawn, and one is chosen: by B-Coder's
score (discount 0.9 and 1), and by its log-probability.
Command: python -m experiments.pipeline --pipeline=b_coder
  --workdir=runs/b_coder
Cost: about two minutes of a CPU core.
Claims: the program of the largest score (discount 0.9) is right more often than
  a drawn one, and than the likeliest one.
Expected: see experiments/papers/worlds/README.md.
Source: Yu et al., "B-Coder: Value-Based Deep Reinforcement Learning for Program
  Synthesis", 2023; sizes, and the discount of the ranking, are ours.
"""

from experiments.pipelines.stages import Stage

_CONFIG = ('--config=configs/worlds/bracket_programs.py', '--workdir={out}')
_ALPHA = '--set=method.losses.DuelingQ.alpha=0.1'


def _ranked(name: str, gamma: float) -> Stage:
  return Stage(
    name=name,
    binary='papers.worlds.ranked_programs',
    flags=(
      *('--model={policy}', '--data={programs}.jsonl', '--out={out}.jsonl'),
      *('--alpha=0.1', f'--gamma={gamma}'),
    ),
  )


def get_stages() -> tuple[Stage, ...]:
  """A clone, its critic, the policy, programs, and two rankings."""
  return (
    Stage(
      name='clone',
      flags=(
        *(*_CONFIG, '--method=sft', '--set=rollout.num_prompts=32'),
        *('--set=rollout.recorded_prompts=32', '--set=iterations=200'),
        *('--set=update.minibatch_prompts=16', '--set=update.epochs=1'),
        '--set=optimizer.learning_rate=2e-3',
      ),
    ),
    Stage(
      name='values',
      flags=(
        *(*_CONFIG, '--method=b_coder@values', _ALPHA),
        *('--set=model.path={clone}', '--set=iterations=40'),
        '--set=evaluation.every=0',
      ),
    ),
    Stage(
      name='policy',
      flags=(
        *(*_CONFIG, '--method=b_coder', _ALPHA, '--set=iterations=20'),
        '--set=model.path={values}',
      ),
    ),
    Stage(
      name='drawn',
      flags=(
        *(*_CONFIG, '--method=b_coder', _ALPHA, '--set=model.path={policy}'),
        *('--set=optimizer.learning_rate=0.0', '--set=task.seed=7'),
        *('--set=iterations=6', '--set=evaluation.every=0'),
        *('--set=rollout.recorded_prompts=0', '--set=rollout.group_size=16'),
        '--set=guards.log_rollouts=48',
      ),
    ),
    Stage(
      name='programs',
      binary='rollout_rows',
      flags=('--workdir={drawn}', '--form=label', '--out={out}.jsonl'),
    ),
    _ranked('ranked', 0.9),
    _ranked('ranked_undiscounted', 1.0),
  )
