"""Bargaining with a scripted seller whose type is hidden."""

from collections.abc import Sequence
import dataclasses
import itertools
import string
from typing import Any, NamedTuple

import numpy as np

from rl_jax.checks import checked, ranged
from rl_jax.tasks import base, draws
from rl_jax.tasks.base import Example, TaskTraits
from rl_jax.tasks.environments.base import (
  DeviceReply,
  Environment,
  EnvironmentTask,
  Reply,
)

PROMPT = '>'
# A plain offer, and appeals to feelings, to reasons, or pressure.
PLAIN, *APPEALS = ACTS = 'ofrp'
PATIENCE = (3, 5)
CONCESSION = 3  # to the appeal that suits
_TYPE = 'type'  # in Example.meta


class Seller(NamedTuple):
  """style: the place in APPEALS of what moves the seller; reserve: the lowest
  price that is accepted; patience: what is left of it.
  """

  style: int
  reserve: int
  patience: int


@dataclasses.dataclass(frozen=True)
@checked
class Haggling(EnvironmentTask):
  """Buy as cheaply as possible; a turn is a dialogue act and a price, as 'f4'.

  The seller asks the highest price and says '7>'. The appeal that suits the
  seller moves the ask down by 3, to the reserve at most. An offer of the new
  ask or more is a deal, at the old ask at most. Else a point of patience is
  lost, one more after an appeal that does not suit, and one more if the offer
  is below half of the old ask less 1; without patience the seller leaves. Any
  other text is an appeal that does not suit, without an offer. Reserves are 1
  to prices / 2, patience is 3 or 5; a quarter of the types is met in validation
  and test only, the others in train only.
  Components: `outcome` 1 for a deal, `ratio` (highest - deal) / highest (the
  sale-to-list ratio of a buyer whose target is 0), `open` 1 for a turn without
  a deal, `suits` 1 for the appeal that suits, `score` 1 where it suits, else
  the ratio (raw scores of EPO).
  Source: this code; the acts and rewards of bargaining in PPDPP.
  """

  prices: int = ranged(8, 4, 10)  # 0 to prices - 1
  reward_weights: dict[str, float] = base.weights_field(ratio=1.0, open=-0.1)
  traits = TaskTraits(global_random=False)

  @property
  def alphabet(self) -> str:
    """The characters of prompts and responses."""
    return ACTS + string.digits[: self.prices] + PROMPT

  @property
  def highest(self) -> int:
    """The first price that is asked."""
    return self.prices - 1

  @property
  def part(self) -> np.float32:
    """The part of the ratio for a price of 1, a factor as in Arms.shares."""
    return np.float32(1.0 / self.highest)

  def sellers(self, split: str) -> list[Seller]:
    """The types of a split."""
    reserves = range(1, self.prices // 2 + 1)
    every = itertools.product(range(len(APPEALS)), reserves, PATIENCE)

    def held_out(seller):
      return sum(seller) % 4 == 0

    return [
      seller
      for seller in map(Seller._make, every)
      if held_out(seller) == (split != 'train')
    ]

  def example(self, split: str, index: int) -> Example:
    """A dialogue with a seller of the split."""
    example = super().example(split, index)
    stream = draws.Draws('haggling', self.seed, split, index)
    seller = stream.choice(self.sellers(split))
    return dataclasses.replace(example, meta={**example.meta, _TYPE: seller})

  def seller(self, example: Example) -> Seller:
    """The hidden type."""
    return Seller(*example.meta[_TYPE])

  def actions(self, example: Example) -> list[str]:
    """Turns that buy at the reserve, by someone who knows the type."""
    style, reserve, _ = self.seller(example)
    act, ask, found = APPEALS[style], self.highest, []
    while ask > reserve:
      ask = max(reserve, ask - CONCESSION)
      found.append(f'{act}{ask - (ask > reserve)}')
    return found

  def make(self, example: Example) -> 'Bargaining':
    """A dialogue with the seller of the example."""
    return Bargaining(self, self.seller(example))

  def device_answers(
    self, examples: Sequence[Example], tokenizer: Any
  ) -> tuple[Any, Any]:
    """The types, i32[N, 3], and 3 i32[N]."""
    from rl_jax.tasks import device_verifiers

    return device_verifiers.pad_rows([self.seller(one) for one in examples])

  def begin_device(self, answer_BA: Any) -> tuple[Any, Any]:
    """The ask, after the type."""
    import jax.numpy as jnp

    ask_B = jnp.full_like(answer_BA[:, 0], self.highest)
    return jnp.concatenate([answer_BA, ask_B[:, None]], axis=1), ask_B

  def step_device(
    self, state: Any, action_BA: Any, length_B: Any, tokenizer: Any
  ) -> tuple[Any, DeviceReply]:
    """The jittable twin of `Bargaining.step`."""
    import jax.numpy as jnp

    from rl_jax.tasks import device_verifiers
    from rl_jax.worlds import device_text

    digits = string.digits[: self.prices]
    words = [act + digit for act in ACTS for digit in digits]
    table_SV, texts = device_text.word_table(words, tokenizer)
    known = {word: number for number, word in enumerate(words)}
    number_S = jnp.asarray([known.get(text, -1) for text in texts], jnp.int32)
    number_B = number_S[device_text.spelled(table_SV, action_BA, length_B)]
    style_B, reserve_B, patience_B, ask_B = state.T
    act_B = jnp.where(number_B < 0, -1, number_B // self.prices)
    offer_B = jnp.where(number_B < 0, -1, number_B % self.prices)
    suits_B = act_B == style_B + 1
    least_B = jnp.maximum(reserve_B, ask_B - CONCESSION * suits_B)
    deal_B = offer_B >= least_B
    low_B = (offer_B >= 0) & (2 * offer_B + 2 < ask_B)
    left_B = patience_B - 1 - ((act_B != 0) & ~suits_B) - low_B
    paid_B = jnp.minimum(offer_B, ask_B)
    ratio_B = deal_B * (self.highest - paid_B).astype(jnp.float32) * self.part
    done_B = deal_B | (left_B <= 0)
    ids_SO, length_S = device_verifiers.pad_rows(
      [tokenizer.encode(digit + PROMPT) for digit in digits]
    )
    after = [style_B, reserve_B, left_B, least_B]
    return jnp.stack(after, axis=1), DeviceReply(
      ids_BO=jnp.asarray(ids_SO)[least_B],
      length_B=jnp.where(done_B, 0, jnp.asarray(length_S)[least_B]),
      rewards={
        base.OUTCOME: deal_B.astype(jnp.float32),
        'ratio': ratio_B,
        'open': 1.0 - deal_B,
        'suits': suits_B.astype(jnp.float32),
        'score': jnp.where(suits_B, 1.0, ratio_B),
      },
      done_B=done_B,
      state_B=least_B,
      action_B=number_B,
    )


class Bargaining(Environment):
  """One dialogue."""

  def __init__(self, task: Haggling, seller: Seller):
    self._task, self._type = task, seller

  def reset(self, seed: int) -> Reply:
    """The highest price."""
    del seed  # the type is that of the example
    self._seller, self._ask = self._type, self._task.highest
    return Reply(f'{self._ask}{PROMPT}', state=self._ask)

  def step(self, action: str) -> Reply:
    """A deal, a lower ask, or the end of the seller's patience."""
    task, digits = self._task, string.digits[: self._task.prices]
    reads = len(action) == 2 and action[0] in ACTS and action[1] in digits
    act = ACTS.index(action[0]) if reads else -1
    offer = int(action[1]) if reads else -1
    suits = act == self._seller.style + 1
    deal, self._ask, self._seller = answered(
      self._seller, self._ask, act, offer
    )
    ratio = np.float32(task.highest - deal) * task.part if deal >= 0 else 0.0
    done = deal >= 0 or self._seller.patience <= 0
    return Reply(
      '' if done else f'{self._ask}{PROMPT}',
      rewards={
        base.OUTCOME: float(deal >= 0),
        'ratio': float(ratio),
        'open': float(deal < 0),
        'suits': float(suits),
        'score': 1.0 if suits else float(ratio),
      },
      done=done,
      state=self._ask,
      action=action if reads else '',
    )


def answered(
  seller: Seller, ask: int, act: int, offer: int
) -> tuple[int, int, Seller]:
  """(price of the deal or -1, next ask, the seller with the patience left).

  act: a place in ACTS, offer: a price; both -1 for other texts.
  """
  suits = act == seller.style + 1
  least = max(seller.reserve, ask - CONCESSION * suits)
  deal = min(offer, ask) if offer >= least else -1
  lost = 1 + (act != 0 and not suits) + (0 <= offer and 2 * offer + 2 < ask)
  return deal, least, seller._replace(patience=seller.patience - lost)
