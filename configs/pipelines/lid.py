"""LID on forms: clones of random episodes that are renamed, then RL.

Random actions fill in forms; each episode is named by the page that it reached
and cloned. RL continues from the clone, and `alone` from random weights.
Command: python -m experiments.pipeline --pipeline=lid --workdir=runs/lid
Expected: over --seed=0 to 4 the clone of about 1100 renamed episodes of 2000
  solves all held-out forms before any RL with four seeds and 55% with one; from
  random weights none are solved (`alone`), also after RL. RL at this rate makes
  the clone worse: 80%, 0%, 100%, 91% and 47% after 30 iterations.
Source: "Pre-Trained Language Models for Interactive Decision-Making", its data
  gathering, reconstructed: round 0 only; the policy is not pre-trained.
"""

from experiments.pipelines.form_clones import clone_flags
from experiments.pipelines.stages import Stage

_CONFIG = '--config=configs/worlds/web_form.py'
_TRAIN = (_CONFIG, '--workdir={out}')
_RL = (
  *(*_TRAIN, '--method=turn_rloo', '--set=iterations=30'),
  '--set=evaluation.every=30',
)


def get_stages() -> tuple[Stage, ...]:
  """The clone begins with untrained weights of the right alphabet."""
  return (
    Stage(
      name='untrained',
      flags=(
        *(*_TRAIN, '--method=turn_rloo', '--set=iterations=1'),
        '--set=optimizer.learning_rate=0.0',
      ),
    ),
    Stage(
      name='rows',
      binary='papers.episodes.relabelled_forms',
      flags=(_CONFIG, '--out={out}.jsonl'),
    ),
    Stage(name='clone', flags=clone_flags('untrained', 'rows', 60, 250)),
    Stage(name='result', flags=(*_RL, '--set=model.path={clone}')),
    Stage(name='alone', flags=_RL),
  )
