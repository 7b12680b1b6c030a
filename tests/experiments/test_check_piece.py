"""The command that checks a piece outside of this repository."""

import dataclasses

import pytest

from experiments import check_piece
from experiments.checks import sampling, table
from rl_jax.pieces import logits, roles, selection

HEAD = """import jax.numpy as jnp
from rl_jax.pieces.ops.masking import by_group, masked_mean
from rl_jax.pieces.piece import piece
from rl_jax.pieces.roles import *
"""
RIGHT = """
@piece
class GroupMean(Credit):
  def __call__(self, ctx: CreditContext) -> CreditOut:
    size = ctx.traj.group_size
    reward_NG = by_group(ctx.credit, size)
    valid_NG = by_group(ctx.traj.valid_B, size)
    mean_N1 = masked_mean(reward_NG, valid_NG, axis=1, keepdims=True)
    return CreditOut((reward_NG - mean_N1).reshape(-1))
"""
# Class -> (base, body, the check that fails, and what it says).
WRONG = {
  'CountsFailedRows': (
    'Credit',
    'reward_NG = ctx.credit.reshape(-1, ctx.traj.group_size)\n'
    '    mean_N1 = reward_NG.mean(axis=1, keepdims=True)\n'
    '    return CreditOut((reward_NG - mean_N1).reshape(-1))',
    'invalid rows count nowhere',
    'the loss becomes ',
  ),
  'ReadsPadding': (
    'Loss',
    'logp = ctx.stats["logp"]\n'
    '    return LossOut(-ctx.traj.advantages_BT * (logp - logp.mean()), {})',
    'no gradient on masked tokens and dropped rows',
    'the gradient of logp becomes ',
  ),
  'CountsPadding': (
    'Weight',
    'share_B = ctx.traj.mask_BT.mean(axis=1, keepdims=True)\n'
    '    return LossOut(ctx.traj.mask_BT * share_B, {})',
    'independent of the padded width',
    'the loss becomes ',
  ),
  'ReadsTheOrder': (
    'Weight',
    'row_B = jnp.arange(ctx.traj.mask_BT.shape[0])\n'
    '    return LossOut(ctx.traj.mask_BT * row_B[:, None], {})',
    'independent of the order of rows and groups',
    'the loss becomes ',
  ),
  'IsNotANumber': (
    'Loss',
    'loss_BT = -ctx.traj.advantages_BT * ctx.stats["logp"]\n'
    '    return LossOut(loss_BT, {"mine/log": jnp.log(loss_BT)})',
    'loss gradients and metrics are finite',
    'the metric mine/log is nan',
  ),
}


def check(tmp_path, user_modules, text, pieces=()):
  """Rows of the table of each subject in a file of that text."""
  path = tmp_path / 'mine.py'
  path.write_text(HEAD + text)
  user_modules.load(str(path))
  subjects = check_piece.subjects(str(path), list(pieces))
  return [(one, list(table.rows(one))) for one in subjects]


def test_a_right_piece_passes_every_check(tmp_path, user_modules):
  """And a method of the same file is checked as it is."""
  method = (
    '\ndef get_method():\n'
    '  from configs.methods import grpo\n'
    '  return grpo.get_method().replace(credit=(GroupMean(),))\n'
  )
  found = check(tmp_path, user_modules, RIGHT + method)
  assert [one.title for one, _ in found] == [
    'GroupMean, role credit',
    'get_method()',
  ]
  path = str(tmp_path / 'mine.py')
  (only,) = check_piece.subjects(path, [], only_method=True)
  assert only.title == 'get_method()'
  for one, rows in found:
    assert len(rows) == len(one.checks)
    assert not [row for row in rows if row.failure]
    assert table.page(one, rows).endswith(f'{len(rows)} checks, 0 failed\n')


@pytest.mark.parametrize('name', WRONG)
def test_a_wrong_piece_is_told_what_differs(name, tmp_path, user_modules):
  """The name of the check, what differs, and file and line of the class."""
  base, body, fails, says = WRONG[name]
  text = (
    f'\n@piece\nclass {name}({base}):\n  def __call__(self, ctx):\n    {body}\n'
  )
  ((one, rows),) = check(tmp_path, user_modules, text)
  failed = {row.name: row.failure for row in rows if row.failure}
  assert says in failed[fails]
  assert f'{tmp_path}/mine.py:8)' in failed[fails]
  page = table.page(one, rows)
  assert f'  FAIL  {fails}\n' in page and failed[fails] in page


def test_one_error_is_said_once(tmp_path, user_modules):
  """No check says more where the piece itself fails."""
  text = (
    '\n@piece\nclass Mine(Loss):\n  def __call__(self, ctx):\n    return 1\n'
  )
  ((one, rows),) = check(tmp_path, user_modules, text)
  (failure,) = [row.failure for row in rows if row.failure]
  assert 'returns int: it should return LossOut(value, metrics)' in failure
  assert 'end in the same error\n' in table.page(one, rows)


def test_what_cannot_be_checked_is_named(tmp_path, user_modules):
  """No piece, a class without @piece, a field without a value."""
  with pytest.raises(ValueError, match=r'neither a piece nor get_method\(\)'):
    check(tmp_path, user_modules, '')
  with pytest.raises(ValueError, match='Mine: write @piece above the class'):
    check(tmp_path, user_modules, '\nclass Mine(Loss):\n  pass\n')
  text = RIGHT.replace('(Credit):', '(Credit):\n  scale: float')
  with pytest.raises(ValueError, match="GroupMean needs a value of 'scale'"):
    check(tmp_path, user_modules, text)
  found = check(tmp_path, user_modules, text, ['GroupMean(scale=2.0)'])
  assert len(found) == 1 and not any(row.failure for row in found[0][1])


OURS = [
  value
  for face in (logits, selection)
  for value in vars(face).values()
  if isinstance(value, type)
  and issubclass(value, roles.LogitTransform | roles.Selector)
  and dataclasses.is_dataclass(value)
]


@pytest.mark.parametrize('cls', OURS, ids=lambda cls: cls.__name__)
def test_pieces_that_sample_pass_their_tables(cls):
  """Every transform of logits and selector of the library."""
  is_selector = issubclass(cls, roles.Selector)
  checks = sampling.SELECTOR if is_selector else sampling.LOGITS
  for check in checks.values():
    check(cls())
