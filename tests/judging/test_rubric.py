"""Rubrics that a model rewrites."""

import json

from rl_jax.judging.rubric import Reviser, Rubric
from rl_jax.models.judge_source import Revision

SOURCE = Revision(
  every=2,
  samples=2,
  refine='{rubric}: {response} has {score}',
  merge='{rubric} <- {rubrics}',
  max_tokens=40,
)
SEEN = [('p', 'a', 1.0), ('p', 'b', 0.5), ('q', 'c', 0.25), ('q', 'd', 0.0)]


def read(params, ids):
  """Answers that show what was asked, and of whom."""
  return [f' {params}({"".join(x)}) ' for x in ids]


def rubric(**fields):
  return Rubric('j', 'r0', Reviser(SOURCE, None, list, read, **fields))


def test_a_revision_joins_what_its_samples_propose():
  """After two iterations; rows are spread evenly over the last one."""
  own = rubric()
  for iteration in range(2):
    own.begin('theta')
    own.see(SEEN)
    assert own.text == 'r0', iteration
  own.begin('eta')
  proposals = [' eta(r0: a has 1) ', ' eta(r0: c has 0.25) ']
  asked = 'r0 <- ' + '\n\n'.join(proposals)
  assert len(asked) > SOURCE.max_tokens
  assert own.state['version'] == 1
  assert own.text == 'r0'  # the question that joins them was too long
  own.see(SEEN[:1])
  own.begin('eta')
  own.begin('eta')
  assert own.text == 'eta(r0 <-  eta(r0: a has 1) )'
  assert own.state['version'] == 2


def test_a_model_of_its_own_answers():
  found = Reviser(SOURCE, 'psi', list, read)('theta', 'r', [['p', 'a', '1']])
  assert found == 'psi(r <-  psi(r: a has 1) )'


def test_without_a_reviser_the_rubric_stays():
  own = Rubric('j', 'r0', None)
  for _ in range(5):
    own.begin('theta')
    own.see(SEEN)
  assert own.text == 'r0'
  assert own.state == Rubric('j', 'r0', None).state


def test_a_state_goes_on_where_it_was():
  """E0: through JSON, between any two iterations."""
  whole, cut = rubric(), rubric()
  for iteration in range(6):
    for own in (whole, cut):
      own.begin('theta')
      own.see(SEEN[iteration % 3 :][:1])
    restored = rubric()
    restored.state = json.loads(json.dumps(cut.state))
    cut = restored
    assert cut.state == whole.state
  assert whole.state['version'] == 2
