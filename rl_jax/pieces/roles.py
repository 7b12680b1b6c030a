"""The roles of pieces: a base class each, and how a piece of it is called.

| slot of Method | base class | call |
|---|---|---|
| `shaping` | Shaping | CreditContext -> CreditOut |
| `credit` | Credit | CreditContext -> CreditOut |
| `group_filter` | GroupFilter | CreditContext -> CreditOut |
| `value_target` | ValueTarget | CreditContext -> CreditOut |
| `pairs` | Pairs | CreditContext -> CreditOut |
| `losses` | Loss, Regularizer, ValueLoss, Shift | LossContext -> LossOut |
| `weights` | Weight | LossContext -> LossOut |
| `aggregation` | Aggregation | AggregationContext -> weights [B, T] |
| `logits` | LogitTransform | LogitContext -> logits |
| `selector` | Selector | `select`, `observe` |
| `rollout` | RolloutWrapper | `begin`, `extend` |
| fields of PairLoss | Score, Link, EdgeWeight | numbers of rows and edges |
| `needs` | Statistic | logits of some tokens -> a number a token |

A context may get further fields, so pieces read what they need of it by name.
"""

from collections.abc import Mapping
import dataclasses
import types
from typing import (
  Any,
  ClassVar,
  NamedTuple,
  Protocol,
  Self,
  TypeVar,
  dataclass_transform,
)

import chex
import jax

from rl_jax.pieces.ops import links
from rl_jax.pieces.piece import Piece, check_declarations
from rl_jax.types import Array, GroupSummary, Metrics, Trajectories

_Statistic = TypeVar('_Statistic', bound='Statistic')
# The default of a field whose readers know that it is there.
_ABSENT: Any = None
NO_OTHERS: Mapping[str, Array] = types.MappingProxyType({})


class LossContext(NamedTuple):
  """The arguments of a loss or a weight, of one whole minibatch."""

  # Of the current policy: `logp` and what the piece `needs`, each [B, T] or
  # [B, T, d]. A loss has gradients through them, a weight has none.
  stats: dict[str, Array]
  traj: Trajectories
  key: Array = _ABSENT  # of the step and the piece
  state: Any = None  # what `init` or the last call returned
  params: Any = None  # the present values of `init_params`

  def policy_tokens(self) -> tuple[Trajectories, Array, Array]:
    """(traj, logp [B, T], advantages [B, T]); all have the shape of the mask.

    Raises: AssertionError for another shape.
    """
    traj, logp_BT = self.traj, self.stats['logp']
    adv_BT = traj.advantages_BT
    chex.assert_equal_shape([logp_BT, adv_BT, traj.logp_old_BT, traj.mask_BT])
    return traj, logp_BT, adv_BT


class LossOut(NamedTuple):
  """The result of a loss or a weight.

  value: of a loss [B, T], to be aggregated, or a scalar that is taken as it
  is; of a weight [B, T]. metrics: by name, scalars or [B, T], which are
  averaged over trained tokens, or maximised where the name ends in `_max`.
  state: the next state of a piece that has one, without gradient.
  """

  value: Array
  metrics: Metrics
  state: Any = None


class CreditContext(NamedTuple):
  """The arguments of a piece that runs once a rollout, after `score`."""

  # Rewards so far for shaping, shaped rewards for value targets and pairs,
  # rewards or advantages so far for credit, unshaped rewards for a group
  # filter; [B], or [B, T] from the first piece on that tells tokens apart.
  credit: Array
  traj: Trajectories
  state: Any = None  # what `init` or the last call returned

  def per_row(self) -> tuple[Array, Trajectories]:
    """(credit [B], traj), before a piece tells tokens apart.

    Raises: AssertionError for credit [B, T].
    """
    chex.assert_rank(self.credit, 1)
    return self.credit, self.traj


class CreditOut(NamedTuple):
  """The result of a piece that runs once a rollout.

  value: of shaping and credit [B] or [B, T], never the former after the
  latter; of a value target also [B, T, H]; of a group filter [N]; of pairs
  `types.Edges`. state: the next state of a piece that has one.
  """

  value: Any
  state: Any = None


class AggregationContext(NamedTuple):
  """The arguments of an aggregation: parts of a minibatch."""

  mask_BT: Array
  weight_B: Array
  group_size: int
  turn_BT: Array | None = None  # the number of each token's turn, in episodes


class LogitContext(NamedTuple):
  """The arguments of a transform of the sampling distribution, of R places."""

  logits_RV: Array
  # Logits of the other policies that the transforms of the method list in
  # `policies`, by name; in an evaluation there may be none.
  others: Mapping[str, Array] = NO_OTHERS
  # Outputs [R, H] of the policy's value head, for those with `value_heads`.
  values_RH: Any = None


class _Stepwise(Piece):
  """The declarations of losses and weights, run in every optimizer step."""

  # Whether the value at a token depends on no statistic of other tokens.
  per_token: ClassVar[bool] = False
  # Whether it depends on no statistic of other groups.
  per_group: ClassVar[bool] = False

  def __call__(self, ctx: LossContext) -> LossOut:
    """The value [B, T], metrics and, if the piece has one, the next state."""
    raise NotImplementedError


class Loss(_Stepwise):
  """A term that is minimised, multiplied by the method's token weights.

  A loss is one of the policy unless it is a Regularizer or a ValueLoss.
  """

  role: ClassVar[str] = 'policy'
  # Whether the loss raises the likelihood of every response that it sees.
  imitates: ClassVar[bool] = False

  @property
  def aggregation(self) -> Any:
    """The Aggregation of this loss; None: that of the method. Often a field."""
    return None

  def check_edges(self, gives: str, maker: str) -> None:
    """Raises ValueError if the loss reads what edges of the maker lack.

    gives: as `Pairs.gives`. maker: as the message is to name it.
    """
    del gives, maker


class Regularizer(Loss):
  """A further term; weights multiply it only if they say so in `weighs`."""

  role: ClassVar[str] = 'regularizer'


class ValueLoss(Loss):
  """A term that trains a value head; see Regularizer for weights."""

  role: ClassVar[str] = 'value'


class Shift(Loss):
  """A number by whose gradient parameters move before that of the others.

    theta' = theta + d s / d theta,  the optimizer reads d L / d theta'

  s are the values of all shifts, each times its step, L the other losses. The
  optimizer changes theta by the gradient at theta' (first order). A shift keeps
  no state, and its metrics are those at theta.
  """

  role: ClassVar[str] = 'shift'


class Weight(_Stepwise):
  """Token weights [B, T] of losses; no gradient reaches them.

  Their product multiplies the losses; the denominators keep the tokens.
  """

  role: ClassVar[str] = 'weight'

  @property
  def weighs(self) -> tuple[str, ...]:
    """Roles of the losses that are weighed."""
    return ('policy',)


class _OncePerRollout(Piece):
  """Pieces that run once a rollout, in `make_batch`."""

  def __call__(self, ctx: CreditContext) -> CreditOut:
    """The value and, if the piece has one, the next state."""
    raise NotImplementedError


class Shaping(_OncePerRollout):
  """Rewards [B] or [B, T] -> rewards [B] or [B, T]."""

  role: ClassVar[str] = 'shaping'


class Credit(_OncePerRollout):
  """Rewards or advantages -> advantages [B] or [B, T]."""

  role: ClassVar[str] = 'credit'

  def measure(self, traj: Trajectories) -> Metrics:
    """Metrics, once a rollout."""
    del traj
    return {}


class ValueTarget(_OncePerRollout):
  """Shaped rewards -> what the value head learns, [B], [B, T] or [B, T, H]."""

  role: ClassVar[str] = 'value_target'
  # H where the targets are not those of `num_values` outputs.
  num_targets: ClassVar[int] = 1


class GroupFilter(_OncePerRollout):
  """Weights [N] of whole groups, 0 to drop one."""

  role: ClassVar[str] = 'group_filter'


class Pairs(_OncePerRollout):
  """Shaped rewards -> comparisons inside groups, `types.Edges`."""

  role: ClassVar[str] = 'pairs'

  @property
  def gives(self) -> str | None:
    """The further content of the edges, see `ops.links`; None: not known."""
    return None


class _Scaled(Protocol):
  """The members of a subclass that ScaledPairs reads."""

  @property
  def margin_scale(self) -> float: ...


class ScaledPairs(Pairs):
  """Pairs whose margins are `margin_scale`, a field, times gaps of rewards."""

  min_group_size = 2

  @property
  def gives(self: _Scaled) -> str:
    """Margins, if the scale is not 0."""
    return links.MARGIN if self.margin_scale else links.NOTHING


class Aggregation(Piece):
  """The aggregation of a [B, T] loss to a scalar: sum(weights * loss)."""

  role: ClassVar[str] = 'aggregation'
  # True: weights depend on which rows are of one group.
  by_group: ClassVar[bool] = False

  def __call__(self, ctx: AggregationContext) -> Array:
    """Weights [B, T]."""
    raise NotImplementedError


class Selector(Piece):
  """Chooses the next prompts; runs on the host's CPU device."""

  role: ClassVar[str] = 'selector'

  @property
  def mixes(self) -> bool:
    """Returns whether it sets the shares of the parts of a mixture itself."""
    return False

  @property
  def predicts(self) -> bool:
    """Returns whether a model predicts the success of prompts for it.

    Its state has `value`, which a run fills in, see runs/valued_prompts.py.
    """
    return False

  def with_parts(self, sizes: tuple[int, ...]) -> Self:
    """The selector of prompts of parts that lie one after the other.

    It is asked for where `mixes` is true.
    """
    del sizes
    return self

  def select(self, state: Any, key: Array, count: int) -> tuple[Array, Any]:
    """int32[count] prompt indices, and the next state."""
    raise NotImplementedError

  def observe(self, state: Any, ids: Array, summary: GroupSummary) -> Any:
    """The state after the groups of these prompts have been judged."""
    raise NotImplementedError


class Score(Piece):
  """A number of each row, which a loss on pairs compares."""

  role: ClassVar[str] = 'score'

  def __call__(self, ctx: LossContext) -> Array:
    """[B]."""
    raise NotImplementedError


class Link(Piece):
  """The loss of an edge, by the scores of its two rows."""

  role: ClassVar[str] = 'link'
  # The meaning of the third argument, see `ops.links`.
  margins: ClassVar[str] = links.SUBTRACTED

  def __call__(self, win: Array, lose: Array, margin: Array) -> Array:
    """Scores of the winners and losers and margins, [N, E] -> [N, E]."""
    raise NotImplementedError


class EdgeWeight(Piece):
  """A weight of each edge; no gradient reaches it."""

  role: ClassVar[str] = 'edge_weight'

  def __call__(self, ctx: LossContext) -> Array:
    """[N, E]."""
    raise NotImplementedError


class LogitTransform(Piece):
  """A change of the sampling distribution, replayed when scoring."""

  role: ClassVar[str] = 'logits'
  # Whether it reads outputs of the policy's value head.
  value_heads: ClassVar[bool] = False

  def with_special_ids(self, ids: tuple[int, ...]) -> Self:
    """The transform that treats these special tokens as it has to."""
    del ids
    return self

  def __call__(self, ctx: LogitContext) -> Array:
    """Logits [R, V]; -inf takes a token out."""
    raise NotImplementedError


class Statistic:
  """A functional of the logits, which a piece lists in `needs`.

  Its decorator is `statistic`; two that are equal are computed once. Credit and
  shaping read it in `traj.extras`, of the weights that sampled; losses and
  weights in `stats`, of the current weights, where it has a gradient.
  """

  # Whether places of different rows are compared, so that no rows are packed.
  by_place: ClassVar[bool] = False

  @property
  def name(self) -> str:
    """The key of its result among the statistics."""
    raise NotImplementedError

  @property
  def policies(self) -> Mapping[str, Any]:
    """Rules of other policies whose logits it reads, by name."""
    return {}

  def __call__(self, chunk: Any) -> Array:
    """The result [B, C] or [B, C, d] on a `statistics.chunk.Chunk` of C places.

    Padding is set to 0 afterwards.
    """
    raise NotImplementedError


class ValueStatistic(Statistic):
  """A statistic that reads outputs of a value head, of every token, too."""

  @property
  def policy(self) -> str:
    """The named policy whose value head is read, '' for the trained one."""
    return ''


class RolloutWrapper(Piece):
  """The sampling of groups where it is more than G samples of the prompt.

  `begin` writes into rows before they are sampled, `extend` changes groups
  that have been judged. A wrapper may do one of them, both or neither.
  """

  role: ClassVar[str] = 'rollout'
  # Whether an opponent plays the other side of games.
  plays: ClassVar[bool] = False
  # Whether episodes are repeated up to a turn.
  replays: ClassVar[bool] = False
  # Whether it reads rewards on the host.
  reads_rewards: ClassVar[bool] = False

  @property
  def by_time(self) -> bool:
    """Returns whether rows are chosen as a collector with a clock would."""
    return False

  @property
  def widens(self) -> int:
    """Rows of a finished group for each of `rollout.group_size`."""
    return 1

  @property
  def continues(self) -> int:
    """Rows of a later generation call for each row of the rollout."""
    return 1

  @property
  def scores(self) -> bool:
    """Returns whether it reads log-probs of the policy before the update."""
    return False

  @property
  def reads_reference(self) -> bool:
    """Returns whether it samples from the reference, in part at least."""
    return False

  @property
  def opponent(self) -> Any:
    """The LogitTransform by which other rows are sampled, or None."""
    return None

  @property
  def rivals(self) -> str | None:
    """The rows of joined groups that are compared, see `ops.rivals`.

    None: the wrapper joins no groups that judges of pairs could read.
    """
    return None

  @property
  def extends(self) -> bool:
    """Returns whether it changes judged groups: then they are scored
    afterwards.
    """
    return type(self).extend is not RolloutWrapper.extend

  def begin(self, traj: Trajectories, sampler: Any) -> Trajectories:
    """Rows with what they hold before they are sampled."""
    del sampler
    return traj

  def extend(
    self, traj: Trajectories, done: Any, sampler: Any
  ) -> tuple[Trajectories, list[Any]]:
    """(the rows that are trained, further rounds of samples)."""
    del done, sampler
    return traj, []

  def make_memory(self, prompts: Any, rollout: Any) -> Any:
    """Returns what is remembered between rollouts, see runs.sources; or
    None.
    """
    del prompts, rollout
    return None

  def shapes(self, traj: Trajectories) -> Trajectories:
    """Abstract rows as they leave the wrapper, for the plan of memory.

    traj: rows as they are sampled; arrays are jax.ShapeDtypeStruct.
    """
    prompts = ('prompt_NP', 'prompt_mask_NP', 'prompt_id_N')

    def more(x: jax.ShapeDtypeStruct):
      return x.update(shape=(self.widens * x.shape[0], *x.shape[1:]))

    rows = jax.tree.map(more, traj.replace(**dict.fromkeys(prompts)))
    return rows.replace(
      prompt_NP=traj.prompt_NP,
      prompt_mask_NP=traj.prompt_mask_NP,
      prompt_id_N=traj.prompt_id_N,
      group_size=self.widens * traj.group_size,
    )


@dataclass_transform(frozen_default=True)
def statistic(cls: type[_Statistic]) -> type[_Statistic]:
  """Class decorator: a frozen dataclass that declares what its base does.

  Raises: TypeError as `rl_jax.pieces.piece.piece` does.
  """
  check_declarations(cls)
  return dataclasses.dataclass(frozen=True)(cls)


def reads_value_heads(needs: Any) -> bool:
  """Returns whether a statistic among `needs` reads outputs of a value head."""
  return any(isinstance(need, ValueStatistic) for need in needs)
