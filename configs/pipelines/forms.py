"""Policies that fill in some forms, cloned from a few random episodes.

For each number of fields a decoder of 83,000 parameters learns from 40 random
episodes, of which those that filled all fields are renamed by what they reached
(experiments.papers.episodes.relabelled_forms).
Command: python -m experiments.pipeline --pipeline=forms --workdir=runs/forms
Cost: a minute of a CPU core.
Expected: 13% of held-out forms of three fields are solved, 3% of four.
"""

from experiments.pipelines.form_clones import clone_flags
from experiments.pipelines.stages import Stage

FIELDS = (3, 4)


def sizes(fields: int) -> dict[str, int]:
  """Fields of configs/worlds/web_form.py for forms of that many fields."""
  page, turns = 2 * fields + 2, 2 * fields
  return {
    'task.fields': fields,
    'rollout.turns.max_turns': turns,
    'rollout.turns.max_observation_tokens': page,
    'rollout.max_prompt_tokens': page + 2 * fields + 1,
    'rollout.max_response_tokens': turns * (page + 2),
  }


def _stages(fields: int) -> tuple[Stage, ...]:
  form = tuple(f'--set={key}={x}' for key, x in sizes(fields).items())
  task = '--config=configs/worlds/web_form.py'
  # The instruction, and a page and an action a turn.
  whole_episode = 2 * fields + 1 + 2 * fields * (2 * fields + 4)
  return (
    Stage(
      name=f'untrained_{fields}',
      flags=(
        *(task, '--workdir={out}', *form, '--method=turn_rloo'),
        *('--set=iterations=1', '--set=optimizer.learning_rate=0.0'),
        '--set=evaluation.every=0',
      ),
    ),
    Stage(
      name=f'rows_{fields}',
      binary='papers.episodes.relabelled_forms',
      flags=(*(task, *form, '--out={out}.jsonl', '--episodes=40'),),
    ),
    Stage(
      name=f'clone_{fields}',
      flags=clone_flags(
        f'untrained_{fields}', f'rows_{fields}', whole_episode, 150
      ),
    ),
  )


def get_stages() -> tuple[Stage, ...]:
  """Three stages for each number of fields."""
  return tuple(stage for fields in FIELDS for stage in _stages(fields))
