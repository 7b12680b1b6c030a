"""The source of a learned reward, and its weight."""

import dataclasses
import math

from rl_jax.checks import checked, chosen, ranged


@dataclasses.dataclass(frozen=True, kw_only=True)
@checked
class RewardModel:
  """A reward component by a model with a value head, which no run trains.

    reward = (V(prompt and response) - center) / scale

  V is the value head after the last token that the policy wrote. The component
  `name` is added to the reward of the task with `weight`; 0 is for pieces that
  read components, and for metrics. path: a work directory of
  --method=reward_model, or a model directory, with the tokens of the policy; it
  computes in the dtype of the policy. Several are an ensemble, or several
  rewards.

  steps: another than 'none' is for --method=process_reward_model: V is the
  product, the least or the last of sigmoid(value) after the tokens that end a
  step, or after the last token of a response without steps. Models trained on
  Monte Carlo labels predict success, so 'last' is theirs (Zhang et al., 2025).
  step_ends: a token whose text ends with one of them ends a step, by default
  one that ends a line.

  separator: not '' is for models of tasks.JoinedPairs with this separator: V is
  the mean probability, from 0 to 1, to beat the other responses of the group,
  or those of an opponent (rollouts.wrappers.Against). It costs the square of
  the group size. shaping.WinRate reads the probabilities themselves.

  head_weights: for models with several value heads, as those of
  --method=aspect_reward_model: V = sum_a head_weights_a V_a. () is the first.
  """

  path: str
  name: str = 'learned'
  weight: float = 1.0
  center: float = 0.0
  scale: float = ranged(1.0, 0.0, open_low=True)
  steps: str = chosen('none', ('none', 'product', 'min', 'last'))
  separator: str = ''
  head_weights: tuple[float, ...] = ()
  step_ends: tuple[str, ...] = ('\n',)

  def __post_init__(self):
    if not self.name.isidentifier():
      raise ValueError(f'RewardModel.name = {self.name!r} is not an identifier')
    if self.separator and self.steps != 'none':
      raise ValueError('RewardModel has either steps or a separator of pairs')
    if self.head_weights and (self.separator or self.steps != 'none'):
      raise ValueError(
        'RewardModel has head_weights, or steps, or a separator of pairs'
      )
    if not self.step_ends or '' in self.step_ends:
      raise ValueError(
        f'RewardModel.step_ends = {self.step_ends!r}: texts that are not empty '
        'are expected'
      )
    if not all(map(math.isfinite, self.head_weights)):
      raise ValueError(
        f'RewardModel.head_weights = {self.head_weights!r} are not finite'
      )
    for field, value in (('weight', self.weight), ('center', self.center)):
      if not math.isfinite(value):
        raise ValueError(f'RewardModel.{field} = {value!r} is not finite')
