"""Random episodes on forms under the name of what they reached."""

from experiments.papers.episodes import relabelled_forms as forms
from rl_jax.tasks import draws
from rl_jax.worlds import WebForm
from rl_jax.worlds.web_form import SUBMIT

TASK = WebForm(fields=2)


def test_relabelled_by_hand():
  """The last value of a field counts, and nothing after a full page."""
  found = forms.relabelled(TASK, ['a1', 'a3', 'b0', 'a2'])
  assert found == ('30', ['a3', 'b0', SUBMIT])
  assert forms.relabelled(TASK, ['b0', 'a1', SUBMIT]) == (
    *('10', ['b0', 'a1', SUBMIT]),
  )
  assert forms.relabelled(TASK, ['a1', 'a2']) is None
  assert forms.relabelled(TASK, ['a1', SUBMIT]) is None
  rows, outcome = forms.played(TASK, *found)
  assert outcome == 1.0
  assert [row['completion'] for row in rows] == found[1]
  assert rows[1]['prompt'] == 'a3b0:a-b-s>a3a3b-s>'


def test_every_relabelled_episode_reaches_its_goal():
  """Again under its own goal it stays as it is; few reach the one they had."""
  own = 0
  for index in range(200):
    stream = draws.Draws('test', index)
    actions = forms.random_actions(TASK, 6, stream)
    assert len(actions) <= 6 and SUBMIT not in actions[:-1]
    found = forms.relabelled(TASK, actions)
    if found is not None:
      assert forms.played(TASK, *found)[1] == 1.0
      assert forms.relabelled(TASK, found[1]) == found
    goal, _ = TASK.pages(TASK.example('train', index))
    own += forms.played(TASK, goal, actions)[1]
  assert own < 10
