"""Mistakes in a piece of the user's, each with what is wanted and its place."""

import dataclasses
import re

import jax
import jax.numpy as jnp
import pytest

from rl_jax.pieces.calls import PieceError
from rl_jax.pieces.logits.transforms import apply_transforms

HEAD = """import jax.numpy as jnp
import numpy as np
from rl_jax.pieces.piece import piece
from rl_jax.pieces.roles import *
from rl_jax.types import static

@piece
class Mine({base}):
{fields}
  def __call__(self, ctx):
"""
# Slot, fields and methods, body; what the message says. One mistake each.
MISTAKES = {
  'tuple': (
    ('losses', '', 'return -ctx.stats["logp"], {}'),
    'losses.0.Mine returns tuple: it should return LossOut(value, metrics), ',
  ),
  'no return': (
    ('weights', '', 'LossOut(ctx.traj.mask_BT, {})'),
    'weights.0.Mine returns NoneType, and it has no `return`: it should return',
  ),
  'result of another role': (
    ('losses', '', 'return CreditOut(-ctx.stats["logp"])'),
    'returns CreditOut: it should return LossOut(value, metrics)',
  ),
  'loss per row': (
    ('losses', '', 'return LossOut(-ctx.stats["logp"].sum(1), {})'),
    'returns a value of shape [8]: it should be [B, T] = [8, 6] or a scalar; '
    'x_B[:, None] * traj.mask_BT has a number for each token',
  ),
  'weight per row': (
    ('weights', '', 'return LossOut(ctx.traj.reward_B, {})'),
    'returns a value of shape [8]: it should be [B, T] = [8, 6]; x_B[:, None]',
  ),
  'a number': (
    ('losses', '', 'return LossOut(0.0, {})'),
    'returns a value of the type float, not an array',
  ),
  'metrics are an array': (
    ('losses', '', 'x = -ctx.stats["logp"]\n    return LossOut(x, x)'),
    'returns metrics of the type array: they should be a dict of names and '
    'arrays, or {}',
  ),
  'metric per row': (
    (
      'weights',
      '',
      'return LossOut(ctx.traj.mask_BT, {"a": ctx.traj.reward_B})',
    ),
    "returns the metric 'a' of shape [8]: it should be [B, T] = [8, 6] or a "
    'scalar',
  ),
  'no metrics': (
    ('losses', '', 'return LossOut(-ctx.stats["logp"])'),
    'Write LossOut(value, {}) where there are no metrics',
  ),
  'credit of groups': (
    ('credit', '', 'return CreditOut(ctx.credit.reshape(2, 4))'),
    'returns a value of shape [2, 4]: it should be [B] = [8] or [B, T] = '
    '[8, 6]; x_NG.reshape(-1) has a number for each row',
  ),
  'filter per row': (
    ('group_filter', '', 'return CreditOut(ctx.credit)'),
    'returns a value of shape [8]: it should be [N] = [2]; by_group(x_B, ',
  ),
  'no edges': (
    ('pairs', '', 'return CreditOut(ctx.credit)'),
    'pairs.Mine returns a value of the type',
  ),
  'aggregation per row': (
    ('aggregation', '', 'return ctx.mask_BT.sum(1)'),
    'aggregation returns a result of shape [8]: it should be [B, T] = [8, 6]',
  ),
  'statistic not declared': (
    ('losses', '', 'return LossOut(ctx.stats["entropy"], {})'),
    "KeyError: 'entropy'. ctx.stats has logp; another statistic is there if "
    "the piece lists it: needs = ('entropy',)",
  ),
  'field of rows among statistics': (
    ('losses', '', 'return LossOut(ctx.stats["advantages"], {})'),
    "KeyError: 'advantages'. It is ctx.traj.advantages_BT; it is filled by",
  ),
  'key of rows': (
    ('credit', '', 'return CreditOut(ctx.traj.extras["dificulty_B"])'),
    "KeyError: 'dificulty_B'. Did you mean 'difficulty_B'?",
  ),
  'misspelt field': (
    ('weights', '', 'return LossOut(ctx.traj.advantage_BT, {})'),
    "no attribute 'advantage_BT'. Did you mean 'advantages_BT'?",
  ),
  'statistics in credit': (
    ('credit', '', 'return CreditOut(ctx.stats["entropy"])'),
    'Credit runs before the update: list what it reads in `needs`',
  ),
  'misspelt context': (
    ('weights', '', 'return LossOut(ctx.trja.advantages_BT, {})'),
    "no attribute 'trja'. Did you mean 'traj'?",
  ),
  'unpacked context': (
    ('losses', '', 'stats, traj, key = ctx\n    return LossOut(stats, {})'),
    'too many values to unpack (expected 3). ctx is a record: read ctx.stats, '
    'ctx.traj, ctx.key, ctx.state, ctx.params',
  ),
  'field that nobody fills': (
    (
      'losses',
      '',
      'return LossOut(ctx.stats["logp"] - ctx.traj.returns_BT, {})',
    ),
    'traj.returns_BT is None; it is filled by method.value_target',
  ),
  'state without init': (
    ('credit', '', 'return CreditOut(ctx.credit - ctx.state)'),
    'ctx.state is None: the piece has no method init',
  ),
  'next state without init': (
    ('credit', '', 'return CreditOut(ctx.credit, ctx.credit.mean())'),
    'returns a state, but has no method init that begins it',
  ),
  'state of another form': (
    (
      'credit',
      'def init(self, num_prompts):\n    return jnp.zeros(())',
      'return CreditOut(ctx.credit, {"mean": ctx.credit.mean()})',
    ),
    "returns a state of the form {'mean': ()}: it should keep that of init, ()",
  ),
  'rows and tokens': (
    (
      'losses',
      '',
      'return LossOut(ctx.stats["logp"] * ctx.traj.reward_B, {})',
    ),
    'A number for each row meets tokens as x_B[:, None]',
  ),
}
BASES = {
  'losses': 'Loss',
  'weights': 'Weight',
  'credit': 'Credit',
  'group_filter': 'GroupFilter',
  'pairs': 'Pairs',
  'aggregation': 'Aggregation',
  'logits': 'LogitTransform',
  'score': 'Score',
}


@pytest.fixture
def write(tmp_path, user_modules):
  """(slot, fields, body) -> (piece, path of its file)."""

  def made(slot, fields, body):
    path = tmp_path / 'mine.py'
    head = HEAD.format(base=BASES[slot], fields=f'  {fields}')
    path.write_text(f'{head}    {body}\n')
    return user_modules.load(str(path)).Mine(), path

  return made


def prepared(toy, slot, piece):
  """The arguments of toy.run, for a method that holds the piece."""
  method = toy.get_method('grpo')
  traj, stats = toy.batch(method)
  several = slot in ('losses', 'weights', 'credit')
  method = dataclasses.replace(method, **{slot: (piece,) if several else piece})
  state = method.init_state(2)
  return method, traj.replace(extras={}), stats, state, jax.random.key(0)


@pytest.mark.parametrize('name', MISTAKES)
def test_mistakes_say_what_is_wanted_and_where(name, toy, write):
  """One line with the piece, what is wanted, and a line of the user's file."""
  (slot, fields, body), message = MISTAKES[name]
  piece, path = write(slot, fields, body)
  with pytest.raises(PieceError) as error:
    toy.run(*prepared(toy, slot, piece))
  text = str(error.value)
  assert text.startswith(f'method.{slot}') and message in text, text
  assert '\n' not in text and re.search(rf'\({path}:\d+\)$', text), text


def test_code_that_branches_on_arrays_is_shown_where(toy, write):
  """A float field is traced, too."""
  body = 'return LossOut(ctx.traj.mask_BT if self.cut > 0.2 else 0, {})'
  piece, path = write('weights', 'cut: float = 0.5', body)
  with pytest.raises(PieceError, match='jnp.where') as error:
    jax.jit(toy.run)(*prepared(toy, 'weights', piece))
  assert f'({path}:' in str(error.value) and '\n' not in str(error.value)


def test_a_part_of_a_loss_is_named_by_its_own_file(toy, write):
  """The score of a loss on pairs."""
  piece, path = write('score', '', 'return ctx.stats["entropy"].sum(1)')
  method = toy.get_method('dpo')
  loss = method.losses[0].replace(score=piece)
  method = dataclasses.replace(method, losses=(loss,))
  traj, stats = toy.batch(method)
  with pytest.raises(PieceError, match='losses.0.PairLoss fails: ') as error:
    toy.run(method, traj, stats, {}, jax.random.key(0))
  assert f'({path}:' in str(error.value)


def test_logits_keep_their_shape(write):
  """[R, V]."""
  piece, path = write('logits', '', 'return ctx.logits_RV.argmax(-1)')
  with pytest.raises(PieceError) as error:
    apply_transforms((piece,), 1.0, jnp.zeros((3, 5)))
  text = str(error.value)
  assert 'returns [3]: it should return logits [R, V] = [3, 5]' in text
  assert f'({path}:' in text


def test_what_a_piece_says_by_itself_is_left_alone(toy, write):
  """E0: its own ValueError, and results that the roles allow."""
  piece, _ = write('weights', '', 'raise ValueError("of its author")')
  with pytest.raises(ValueError) as error:
    toy.run(*prepared(toy, 'weights', piece))
  assert str(error.value) == 'of its author'
  piece, _ = write('losses', '', 'return LossOut(ctx.stats["logp"].sum(), {})')
  toy.run(*prepared(toy, 'losses', piece))
