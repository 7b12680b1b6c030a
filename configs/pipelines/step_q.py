"""Best of n by step-level action values on KeyDoor, which DPO has learned.

A weak policy is taught by recorded moves of which half are noise. Episodes of
it after each action of each state give pairs of actions; DPO makes of them a
model of action values; of n moves that the policy draws, the best is made.
Command: python -m experiments.pipeline --pipeline=step_q --workdir=runs/step_q
Cost: 75 seconds of a CPU core.
Expected: over --seed=0 to 4 the policy reaches the goal in 8% [0, 16] of seven
  held-out grids, the best of 2, 4, 8, 16 moves in 34% [11, 58], 54% [18, 90],
  55% [15, 95], 51% [7, 95]: better with every seed, but by how much is decided
  by the weak policy (5% to 17% in the training grids) and its values: best of
  4 has 95% with one seed, 16% with another. Beyond 4, one seed gains, the
  others gain nothing or lose: errors of the values cost as much as more draws
  gain.
Source: "Enhancing Decision-Making for LLM Agents via Step-Level Q-Value
  Models", reconstructed from the abstract: values are means over episodes that
  are repeated from a state, where the paper searches trees.
"""

from experiments.pipelines.stages import Stage

_CONFIG = '--config=configs/worlds/logged_moves.py'
_TRAIN = (
  *(_CONFIG, '--workdir={out}', '--set=evaluation.every=0'),
  '--set=rollout.recorded_prompts=64',
)


def get_stages() -> tuple[Stage, ...]:
  """The last stage is there for what it prints."""
  return (
    Stage(
      name='warm',
      flags=(
        *(*_TRAIN, '--method=sft', '--set=rollout.group_size=1'),
        *('--set=task.noise=0.5', '--set=iterations=200'),
      ),
    ),
    Stage(
      name='pairs',
      binary='papers.preferences.step_values',
      flags=(_CONFIG, '--policy={warm}', '--out={out}.jsonl'),
    ),
    Stage(
      name='values',
      flags=(
        *(*_TRAIN, '--method=dpo', '--set=rollout.group_size=2'),
        *('--set=model.path={warm}', '--set=iterations=600'),
        "--set=task=PreferenceRows(path='{pairs}.jsonl')",
      ),
    ),
    Stage(
      name='result',
      binary='papers.preferences.step_values',
      flags=(
        *(_CONFIG, '--policy={warm}', '--values={values}'),
        '--out={out}.jsonl',
      ),
    ),
  )
