"""Goal-conditioned reward models in use: samples are discarded and chosen.

A policy begins with 300 steps on chains of a teacher with slips. Of its samples
right ones are paired with wrong ones, and two reward models begin at it and
learn 150 iterations: `plain` from the pairs, `goals` with the contrastive loss
of goals beside them. 8 samples each of other prompts are then discarded where
the cosine of their state with the mean last state of right responses is low, or
the one of the largest cosine is chosen; and a search that adds ten times that
cosine to the log-prob answers 300 prompts (`goal_steering`).
Command: python -m experiments.pipeline --pipeline=gc_reward_model
  --workdir=runs/gc_reward_model
Cost: about four minutes of a CPU core.
Claims: with `goals` the cosine halfway through a response tells right samples
  from wrong ones better (AUROC) than with `plain`; the vote of what stays is
  right on as many prompts as that of all samples, less a point at most, with a
  fifth of the tokens saved; with `goals` the sample of the largest cosine is
  right on more prompts than a drawn sample, and than with `plain`; the search
  with the cosine of `goals` answers more prompts right than without (weight 0).
Expected: see experiments/papers/worlds/README.md.
Source: "Learning Goal-Conditioned Representations for Language Reward Models",
  2024 (goal-conditioned-rm, by a digest of its code); coef 0.5 and 16 samples
  are theirs, that 90% of right samples stay is ours.
"""

from experiments.pipelines import chain_stages
from experiments.pipelines.stages import Stage

METHODS = {'plain': 'reward_model', 'goals': 'gc_reward_model'}


def _model(name: str, method: str) -> tuple[Stage, ...]:
  """A reward model, samples that its states judge, and a search by them."""
  return (
    Stage(
      name=name,
      flags=(
        *(*chain_stages.CONFIG, f'--method={method}'),
        *('--set=model.path={warm}', '--set=model.value_head=True'),
        '--set=iterations=150',
        *chain_stages.recorded('{pairs}.jsonl', samples=2),
      ),
    ),
    Stage(
      name=f'filtered_{name}',
      binary='papers.preferences.goal_filter',
      flags=(
        *(f'--model={{{name}}}', '--goals={pairs}.jsonl'),
        *('--data={bench}.jsonl', '--out={out}.jsonl'),
        *('--max_prompt_tokens=10', '--max_response_tokens=25'),
      ),
    ),
    Stage(
      name=f'steered_{name}',
      binary='papers.preferences.goal_steering',
      flags=(
        *('--policy={warm}', f'--model={{{name}}}', '--goals={pairs}.jsonl'),
        *('--weights=0,10', '--out={out}.jsonl'),
      ),
    ),
  )


def get_stages() -> tuple[Stage, ...]:
  """A start, pairs of its samples, and both reward models."""
  return (
    chain_stages.WARM,
    chain_stages.logged('lessons', 'warm', 20),
    Stage(
      name='pairs',
      binary='rollout_rows',
      flags=('--workdir={lessons}', '--form=pair', '--out={out}.jsonl'),
    ),
    chain_stages.logged('others', 'warm', 10, '--set=task.seed=7'),
    chain_stages.rows('bench', 'samples', 'others'),
    *(stage for item in METHODS.items() for stage in _model(*item)),
  )
