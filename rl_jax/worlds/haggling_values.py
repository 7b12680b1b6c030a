"""Exact values of Haggling: of random turns and of the best policy."""

import collections
import functools
import itertools

from rl_jax.worlds import haggling
from rl_jax.worlds.haggling import Haggling, Seller


def random_policy(task: Haggling, split: str = 'train') -> dict[str, float]:
  """Expected components of uniform draws among all well-formed turns."""
  turns = _turns(task)

  @functools.cache
  def value(seller: Seller, ask: int) -> tuple[float, float, float]:
    """(deals, ratio, turns without a deal) from here on."""
    deals = ratio = open_turns = 0.0
    for act, offer in turns:
      deal, after, left = haggling.answered(seller, ask, act, offer)
      found = 1.0, 1.0 - deal / task.highest, 0.0
      if deal < 0:
        ended = left.patience <= 0
        more = (0.0, 0.0, 0.0) if ended else value(left, after)
        found = more[0], more[1], more[2] + 1.0
      deals += found[0] / len(turns)
      ratio += found[1] / len(turns)
      open_turns += found[2] / len(turns)
    return deals, ratio, open_turns

  found = [value(seller, task.highest) for seller in task.sellers(split)]
  names = 'outcome', 'ratio', 'open'
  means = [sum(column) / len(found) for column in zip(*found, strict=True)]
  return dict(zip(names, means, strict=True))


def best_value(
  task: Haggling, split: str = 'train', *, knows_type: bool = False
) -> float:
  """Expected ratio - 0.1 open of the best policy, which knows the types of the
  split and how often they are; knows_type: also whom it faces.

  A belief is the set of sellers, with what is left of their patience, that the
  asks so far allow: all are equally likely, as the seller draws nothing.
  """
  turns = _turns(task)

  @functools.cache
  def value(ask: int, sellers: frozenset[Seller]) -> float:
    """Sum over the sellers; a belief holds no two that are equal."""
    best = -float('inf')
    for act, offer in turns:
      total, after = 0.0, collections.defaultdict(set)
      for seller in sellers:
        deal, least, left = haggling.answered(seller, ask, act, offer)
        if deal >= 0:
          total += 1.0 - deal / task.highest
          continue
        total -= 0.1
        if left.patience > 0:
          after[least].add(left)
      total += sum(value(ask, frozenset(who)) for ask, who in after.items())
      best = max(best, total)
    return best

  sellers = task.sellers(split)
  groups = [[one] for one in sellers] if knows_type else [sellers]
  total = sum(value(task.highest, frozenset(group)) for group in groups)
  return total / len(sellers)


def _turns(task):
  return list(itertools.product(range(len(haggling.ACTS)), range(task.prices)))
