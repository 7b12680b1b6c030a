"""Labels of steps for the value head."""

import jax.numpy as jnp
import numpy as np
import pytest

from rl_jax.data.completions import encode_recorded
from rl_jax.judging.step_labels import step_labels
from rl_jax.pieces.losses import StepLabels
from rl_jax.pieces.roles import LossContext
from rl_jax.tasks.base import Example, RecordedResponse

# Right, half right, wrong, right: by Monte Carlo.
LABELS = np.array([[1.0, -1.0, 0.5, 0.0, 1.0], [-1.0, 0.0, -1.0, 1.0, 1.0]])
VALUES = np.array([[1.0, 9.0, -1.0, 2.0, 9.0], [9.0, -2.0, 9.0, 9.0, 9.0]])
MASK = np.array([[1, 1, 1, 1, 1], [1, 1, 1, 1, 0]])


def evaluate(toy, values=VALUES, mask=MASK, **fields):
  traj = toy.trajectories(mask, group_size=1)
  labels = jnp.asarray(LABELS, jnp.float32)
  traj = traj.replace(extras={'step_label_BT': labels})
  stats = {'values_after': jnp.asarray(values, jnp.float32)}
  loss, metrics, _ = StepLabels(**fields)(LossContext(stats, traj, None))
  return float(loss), metrics


def test_hard_labels_by_hand(toy):
  """-ls(1), -ls(-1), -ls(-2) and -ls(2): what follows a wrong step is out."""
  loss, metrics = evaluate(toy)
  expected = (0.313262 + 1.313262 + 2.126928 + 0.126928) / 4
  assert loss == pytest.approx(expected, abs=1e-6)
  assert metrics['value/step_accuracy'] == 0.5
  # At threshold 0.5 the second step is wrong, and ends its row.
  expected = (0.313262 + 0.313262 + 0.126928) / 3
  found = evaluate(toy, threshold=0.5)[0]
  assert found == pytest.approx(expected, abs=1e-6)


def test_soft_labels_by_hand(toy):
  """Squares of sigmoid(1) - 1, sigmoid(-1) - 0.5, sigmoid(2), sigmoid(-2)."""
  found = evaluate(toy, kind='soft')[0]
  expected = (0.268941**2 + 0.231059**2 + 0.880797**2 + 0.119203**2) / 4
  assert found == pytest.approx(expected, abs=1e-6)


def test_only_labelled_and_trained_tokens_count(toy):
  """E0: values elsewhere may be anything; without truncation more count."""
  wild = np.where((LABELS < 0) | (MASK == 0), np.nan, VALUES)
  wild[0, 4] = wild[1, 3] = np.nan  # after a wrong step
  assert evaluate(toy, wild) == evaluate(toy)
  whole = (4 * evaluate(toy)[0] + 2 * 0.000123) / 6
  found = evaluate(toy, truncate=False)[0]
  assert found == pytest.approx(whole, abs=1e-6)


def test_every_token_of_a_step_has_its_label(toy):
  """By hand: the third token belongs to the half right step, the fourth to the
  wrong one, which is the last that counts; so do both tokens of the second row.
  """
  values = np.array([[1.0, 3.0, -1.0, 2.0, 9.0], [-3.0, -2.0, 9.0, 9.0, 9.0]])
  found = evaluate(toy, values, every_token=True)[0]
  # -ls(1), -ls(3), -ls(-1), -ls(-2), and -ls(3), -ls(2).
  expected = 0.313262 + 0.048587 + 1.313262 + 2.126928 + 0.048587 + 0.126928
  assert found == pytest.approx(expected / 6, abs=1e-6)


def test_steps_of_one_token_have_no_others(toy):
  """E0: where every token ends a step, the switch changes nothing."""
  traj = toy.trajectories(MASK, group_size=1)
  labels = jnp.asarray(np.where(LABELS < 0, 1.0, LABELS), jnp.float32)
  traj = traj.replace(extras={'step_label_BT': labels})
  context = LossContext(
    {'values_after': jnp.asarray(VALUES, jnp.float32)}, traj, None
  )
  values = [StepLabels(every_token=x)(context).value for x in (False, True)]
  assert values[0] == values[1]


class Words:
  """One token for each two letters."""

  eos_ids = (1,)

  def encode(self, text):
    return [5] * ((len(text) + 1) // 2)


def test_labels_stand_at_the_last_tokens_of_steps():
  """Steps are encoded one by one, and the end token has no label."""
  logged = RecordedResponse(
    text='abc\nd\n', steps=('abc\n', 'd\n'), step_labels=(1.0, 0.25)
  )
  ids, _ = encode_recorded(Example('x', '', 0), logged, Words())
  assert ids == [5, 5, 5, 1]
  found = step_labels([logged], Words(), 5)
  np.testing.assert_array_equal(found, [[-1, 1, 0.25, -1, -1]])
