"""Links and makers of pairs that do not fit are refused by name."""

import dataclasses

import jax.numpy as jnp
import numpy as np
import pytest

from experiments.flags.configuration import load_method
from rl_jax.method import validate
from rl_jax.pieces import preferences as pref
from rl_jax.pieces.ops import links
from rl_jax.pieces.roles import CreditContext, LossContext

MARGINS = pref.BestWorst(margin_scale=1.0)
LINKS = [
  one
  for one in vars(pref).values()
  if getattr(one, 'role', None) == 'link' and dataclasses.is_dataclass(one)
]
MAKERS = [
  one
  for one in vars(pref).values()
  if getattr(one, 'role', None) == 'pairs' and dataclasses.is_dataclass(one)
]


def check(pairs, *own_links):
  """Raises ValueError if the parts of a method do not fit."""
  losses = [
    pref.PairLoss(score=pref.LogRatio(), link=link) for link in own_links
  ]
  method = load_method('dpo').replace(pairs=pairs, losses=tuple(losses))
  validate(method, group_size=4, has_value_head=False)


@pytest.mark.parametrize('link', LINKS, ids=lambda cls: cls.__name__)
def test_every_link_says_what_it_reads(link):
  """And does read it: the loss depends on its third argument, or does not."""
  kinds = ('SUBTRACTED', 'FITTED', 'LOGIT', 'CONFIDENCE', 'UNUSED')
  assert link.margins in [getattr(links, kind) for kind in kinds]

  def call(x):
    return link()(*(jnp.full((1, 1), y) for y in (0.4, 0.1, x)))[0, 0]

  assert (call(0.5) != call(0.75)) == (link.margins != links.UNUSED)


@pytest.mark.parametrize('maker', MAKERS, ids=lambda cls: cls.__name__)
def test_every_maker_says_what_it_gives(maker):
  assert maker().gives in (links.MARGIN, links.CONFIDENCE, links.NOTHING)
  if 'margin_scale' in {field.name for field in dataclasses.fields(maker)}:
    assert maker(margin_scale=0.5).gives == links.MARGIN
    assert maker(margin_scale=0.0).gives == links.NOTHING


@pytest.mark.parametrize(
  'pairs, own_links',
  [
    (pref.SearchPairs(), [pref.ConfidentSigmoid()]),
    (pref.SearchPairs(), [pref.Sigmoid()]),
    (pref.BestWorst(), [pref.NCA()]),
    (MARGINS, [pref.Sigmoid()]),
    (MARGINS, [pref.PairTargets()]),
    (MARGINS, [pref.NCA(), pref.Square()]),
    (pref.GivenMargin(scale=0.0), [pref.APOZero()]),
  ],
)
def test_what_fits(pairs, own_links):
  check(pairs, *own_links)


@pytest.mark.parametrize(
  'pairs, own_links, message',
  [
    (
      pref.RecordedPairs(),
      [pref.ConfidentSigmoid()],
      'RecordedPairs.. does not say it',
    ),
    (MARGINS, [pref.ConfidentSigmoid()], 'BestWorst.. does not say it'),
    (pref.BestWorst(), [pref.SoftTarget()], 'BestWorst.. gives none'),
    (pref.SearchPairs(), [pref.PairTargets()], 'SearchPairs.. gives none'),
    (pref.Rejection(), [pref.SquareOfGap()], 'Rejection.. gives none'),
    (pref.GivenMargin(scale=0.0), [pref.SoftTarget()], 'GivenMargin.. gives'),
    (MARGINS, [pref.NCA()], 'BestWorst gives margins, .*link = NCA reads'),
    (pref.GivenMargin(), [pref.Targets()], 'GivenMargin gives margins'),
  ],
)
def test_what_does_not_fit(pairs, own_links, message):
  with pytest.raises(ValueError, match=message):
    check(pairs, *own_links)


def test_trees_of_leaves_say_only_which_child_is_better():
  method = load_method('mcts_dpo@leaves')
  loss = pref.PairLoss(score=pref.LogRatio(), link=pref.ConfidentSigmoid())
  method = method.replace(losses=(pref.TreeSiblings(loss=loss),))
  with pytest.raises(ValueError, match='TreeSiblings.. does not say it'):
    validate(method, group_size=4, has_value_head=False)


def test_pairs_of_users_without_a_confidence_are_named(toy):
  """Edges say what they give where their maker does not."""
  traj = toy.trajectories(
    np.ones((2, 1)), group_size=2, logp_ref_BT=np.zeros((2, 1))
  )
  traj = traj.replace(
    edges=pref.BestWorst()(CreditContext(jnp.arange(2.0), traj)).value
  )
  loss = pref.PairLoss(score=pref.LogRatio(), link=pref.ConfidentSigmoid())
  with pytest.raises(ValueError, match='edges.confidence_NE is None'):
    loss(LossContext({'logp': jnp.zeros((2, 1))}, traj, None))
