"""ONI: a reward for messages that an annotator calls helpful."""

import json

import jax
import jax.numpy as jnp
import numpy as np

from rl_jax.checks import INT32, chosen, ranged
from rl_jax.pieces import row_inputs
from rl_jax.pieces.ops import feedback, moments
from rl_jax.pieces.ops.masking import on_tokens
from rl_jax.pieces.ops.turns import turn_view
from rl_jax.pieces.piece import piece
from rl_jax.pieces.roles import CreditContext, CreditOut, Shaping
from rl_jax.types import Array, static

RETRIEVAL, CLASSIFICATION, RANKING = 'retrieval', 'classification', 'ranking'


@piece
class FeedbackReward(Shaping):
  """extrinsic R_t + intrinsic r(m_k) / N(m_k)^exponent at the end of turn k.

    retrieval       r(m) = label of m, 0 as long as it has none
    classification  r(m) = 1[p(helpful | m) > eta], of a logistic model
    ranking         r(m) standardised over all messages so far, 0 where <= theta

  m_k is the message that answers turn k, N how often the episode has had it.
  Messages are numbers with `factors` digits, the first of which is the kind;
  models are linear in the digits and take `steps` steps of gradient descent an
  iteration on all labels that have arrived. The annotator is a rule, kinds
  `helpful`, wrong with probability `error`: it labels so many messages that are
  new to it an iteration (`labels`), newest first, or compares as many pairs of
  known ones, and answers after `delay` iterations. With `table`, a JSONL file
  of {message, label}, the annotator says what the file does, labels from 0 to
  1, and is asked about its messages only: so a model annotates what it was
  shown after an earlier run.
  Source: "Online Intrinsic Rewards for Decision Making Agents from Large
  Language Model Feedback" (ONI); facebookresearch/oni, by a digest. Its
  ranking passes the raw score on, neither standardised nor cut (a name one
  letter away); here it is as the paper says. There a language model annotates
  while the policy learns, here between runs (`table`), and models of messages
  do not read text.
  """

  kind: str = chosen(RETRIEVAL, (RETRIEVAL, CLASSIFICATION, RANKING))
  factors: tuple[int, ...] = static(default=(5, 9))
  helpful: tuple[int, ...] = static(default=(2, 3, 4))
  extrinsic: float = 1.0  # released: 0.1 with scores, 10 for sparse rewards
  intrinsic: float = ranged(0.4, 0.0)
  exponent: float = ranged(3.0, 0.0)
  error: float = ranged(0.0, 0.0, 1.0)
  labels: int = ranged(10, 1, INT32, static=True)  # an iteration
  delay: int = ranged(0, 0, 1000, static=True)  # iterations
  eta: float = ranged(0.5, 0.0, 1.0)
  theta: float = 0.0  # released: -0.5, which passes negative rewards on
  rate: float = ranged(1.0, 0.0, open_low=True)
  steps: int = ranged(32, 1, INT32, static=True)
  seed: int = ranged(0, 0, INT32, static=True)
  table: str = static(default='')
  reads = feedback.READS

  def __post_init__(self):
    if not self.factors or min(self.factors) < 1:
      raise ValueError(
        f'FeedbackReward.factors = {self.factors}: expected numbers of digits'
      )
    if not set(self.helpful) <= set(range(self.factors[0])):
      raise ValueError(
        f'FeedbackReward.helpful = {self.helpful}: kinds are 0 to '
        f'{self.factors[0] - 1}, the first of factors = {self.factors}'
      )

  def init(self, num_prompts: int) -> dict[str, Array]:
    """No message was seen, nothing is labelled or asked."""
    del num_prompts
    count = int(np.prod(self.factors))
    asked = (count, count) if self.kind == RANKING else (count,)
    never = 0.0 if self.kind == RANKING else -1.0
    return {
      'iteration': jnp.zeros((), jnp.int32),
      'first': jnp.full(count, -1),
      'known': jnp.full(asked, never),
      'waiting': jnp.full((self.delay, *asked), never),
      'weight': jnp.zeros(sum(self.factors)),
      **moments.none(),
      **({'given': self._given(count)} if self.table else {}),
    }

  def _given(self, count: int) -> Array:
    """The labels of the file, float32 [M]; -1: none.

    Raises: ValueError naming the line of a message that there is not.
    """
    given_M = np.full(count, -1.0, np.float32)
    with open(self.table) as file:
      for number, line in enumerate(file, 1):
        row = json.loads(line)
        message, label = row['message'], row['label']
        if not (0 <= message < count and 0 <= label <= 1):
          raise ValueError(
            f'FeedbackReward.table = {self.table!r}, line {number}: message '
            f'{message} and label {label}: expected 0 to {count - 1}, and 0 to '
            '1'
          )
        given_M[message] = label
    return jnp.asarray(given_M)

  def __call__(self, ctx: CreditContext) -> CreditOut:
    """[B] or [B, T] -> [B, T]."""
    reward, traj, state = ctx.credit, ctx.traj, ctx.state
    reward_BT = on_tokens(reward, traj.mask_BT)
    view = turn_view(traj)
    said = row_inputs.read(traj, *next(iter(feedback.READS.items())))
    message_BK = feedback.turn_messages(traj, said, view.played_BK.shape[1])
    counted_BK = (message_BK >= 0) & (traj.valid_B > 0)[:, None]
    state = self._annotated(state, message_BK, counted_BK)
    value_M, state = self._values(state, message_BK, counted_BK)
    value_BK = jnp.where(message_BK >= 0, value_M[message_BK], 0.0)
    value_BK /= feedback.occurrences(message_BK) ** self.exponent
    added_BT = self.intrinsic * view.on_last(value_BK)
    return CreditOut(self.extrinsic * reward_BT + added_BT, state)

  def _annotated(
    self, state: dict[str, Array], message_BK: Array, counted_BK: Array
  ):
    """Adds the messages of this iteration and the answers that arrive."""
    iteration, first_M = state['iteration'], state['first']
    number_BK = jnp.where(counted_BK, message_BK, len(first_M))
    now_M = jnp.zeros(len(first_M), bool).at[number_BK].set(True, mode='drop')
    first_M = jnp.where((first_M < 0) & now_M, iteration, first_M)
    kind_M = np.arange(len(first_M)) // int(np.prod(self.factors[1:]))
    helps_M = jnp.asarray(np.isin(kind_M, self.helpful), jnp.float32)
    seen_M = first_M
    if self.table:
      given_M = state['given']
      helps_M = jnp.maximum(given_M, 0.0)
      seen_M = jnp.where(given_M >= 0, first_M, -1)  # of others nothing is said
    if self.kind == RANKING:
      key = jax.random.fold_in(jax.random.key(self.seed), iteration)
      pairs = seen_M >= 0, self.error, key, self.labels
      answer, join = feedback.compared(helps_M, *pairs), jnp.add
    else:
      old = jnp.concatenate([state['waiting'], state['known'][None]])
      asked_M = (old >= 0).any(axis=0)
      picked_M = feedback.newest(seen_M, asked_M, self.labels)
      label_M = feedback.labels(helps_M, self.error, self.seed)
      answer, join = jnp.where(picked_M, label_M, -1.0), jnp.maximum
    queue = jnp.concatenate([state['waiting'], answer[None]])
    return state | {
      'iteration': iteration + 1,
      'first': first_M,
      'known': join(state['known'], queue[0]),
      'waiting': queue[1:],
    }

  def _values(
    self, state: dict[str, Array], message_BK: Array, counted_BK: Array
  ):
    """The value of every message, [M], and the state after the update."""
    if self.kind == RETRIEVAL:
      return jnp.maximum(state['known'], 0.0), state
    phi_MF = jnp.asarray(feedback.features(self.factors))
    losses = feedback.classification_loss, feedback.ranking_loss
    slope = jax.grad(losses[self.kind == RANKING])

    def step(_, w: Array):
      return w - self.rate * slope(w, phi_MF, state['known'])

    weight = jax.lax.fori_loop(0, self.steps, step, state['weight'])
    score_M, state = phi_MF @ weight, state | {'weight': weight}
    if self.kind == CLASSIFICATION:
      passed_M = jax.nn.sigmoid(score_M) > self.eta
      return passed_M.astype(jnp.float32), state
    stream = {name: state[name] for name in moments.none()}
    counted = counted_BK.astype(jnp.float32)
    stream = moments.merged(stream, score_M[message_BK], counted)
    deviation = moments.deviation(stream)
    apart_M = (score_M - stream['mean']) / jnp.where(
      deviation > 0, deviation, 1.0
    )
    return jnp.where(apart_M > self.theta, apart_M, 0.0), state | stream
