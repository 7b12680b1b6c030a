"""The records that travel through one iteration, and the legend of letters.

Shapes are written into names at the seams, one capital letter per dimension:

  N prompts of a batch       G samples per prompt (a group)   B rows, B = N * G
  P prompt tokens (left-padded)    T response tokens (right-padded)
  V vocabulary   D model width   H query heads, or outputs of the value head
  J key/value heads
  K head size, or turns of an episode    F hidden width of the MLP, or features
  L layers

The rows of a group are adjacent: row n * G + g is sample g of prompt n. All
log-probabilities are natural logarithms (nats). Everything that an algorithm
touches is [B] or [B, T], and every [B, T] float array is exactly 0 where the
mask is 0.
"""

import functools
from typing import Any

from flax import struct
import jax

Array = jax.Array
Metrics = dict[str, Array]

# A dataclass field that is part of the compiled program, not of the data.
static = functools.partial(struct.field, pytree_node=False)


def filled_later() -> Any:
  """A field of Trajectories that is None until the stage that fills it.

  Its type is that of what the stage writes: what comes after reads no None.
  """
  return struct.field(default=None)


# Values of Trajectories.kind_BT. Only POLICY tokens were chosen by the policy.
PAD, POLICY, ENVIRONMENT, FORCED = 0, 1, 2, 3

# The top-level tree of the parameters that pieces of the method learn.
LEARNED = 'pieces'
# The entry of an update's metrics that is not a scalar.
TOKENS = 'tokens'


class Turns(struct.PyTreeNode, kw_only=True):
  """Numbers of the turns of episodes, [B, K] for K turns at most.

  reward: of each turn, combined by the task; the sum of a row is reward_B, and
  turns that were not played have 0. state: a number for what the policy faced,
  action: one for what it did; equal within a group where the environment calls
  them equal, -1 where it does not say. calls: tool calls.
  duration: how long an action took, in units of the environment.
  """

  reward_BK: Array
  state_BK: Array  # int32
  action_BK: Array  # int32
  calls_BK: Array  # int32
  duration_BK: Array | None = None


class Edges(struct.PyTreeNode, kw_only=True):
  """Comparisons inside groups: edge e of prompt n is win > lose, each [N, E].

  win_NE, lose_NE: sample indices. weight_NE: 0 where there is no comparison.
  margin_NE: by how much, in units of the reward times a scale of the maker of
  the pairs; 0 where it says nothing. confidence_NE: the probability, from 1/2
  to 1, that the label is right; None where the maker does not say.
  """

  win_NE: Array  # int32
  lose_NE: Array  # int32
  weight_NE: Array  # float32
  margin_NE: Array  # float32
  confidence_NE: Array | None = None  # float32


class Trajectories(struct.PyTreeNode, kw_only=True):
  """One rollout batch, filled in stage by stage.

  generate: prompts, response, kind, length, finished, logp_behaviour.
  score: logp_old, logp_ref, entropy, values. make_batch: rewards, advantages,
  returns, edges. A dropped row has weight_B = 0; it is never a shorter array.
  """

  prompt_NP: Array  # int32
  prompt_mask_NP: Array  # float32, 1 on real tokens
  prompt_id_N: Array  # int32, stable index of the prompt in its data set
  group_size: int = static()
  response_BT: Array  # int32, includes the end-of-sequence token
  kind_BT: Array  # int32: PAD, POLICY, ENVIRONMENT or FORCED
  length_B: Array  # int32, response tokens of every kind
  finished_B: Array  # bool, stopped by itself (not cut at the limit)
  row_id_B2: Array  # int32: (group serial in the run, sample index)
  policy_version_B: Array  # int32, optimizer step of the sampling weights
  mask_BT: Array  # float32, 1 on tokens that the loss may train
  valid_B: Array  # float32, 1 where the row counts in group statistics
  weight_B: Array  # float32, weight of the row in the loss
  logp_behaviour_BT: Array  # of what really drew the token
  logp_old_BT: Array = filled_later()  # denominator of the trust region
  logp_ref_BT: Array = filled_later()
  entropy_BT: Array = filled_later()
  values_BT: Array = filled_later()  # of the first head, before the update
  values_BTH: Array = filled_later()  # the same of all heads
  rewards: dict[str, Array] = struct.field(default_factory=dict)  # each [B]
  reward_B: Array = filled_later()  # the components combined by the task
  advantages_BT: Array = filled_later()
  returns_BT: Array = filled_later()  # targets of the value head
  returns_BTH: Array = filled_later()  # the same of several heads
  edges: Edges = filled_later()  # comparisons of the samples of a group
  extras: dict[str, Array] = struct.field(default_factory=dict)
  # Of episodes: the turn of every token, from 0, an observation in the turn
  # that it opens; -1 at padding. None where a row is one response.
  turn_BT: Array | None = None
  turns: Turns | None = None
  # Of episodes that rewrite their context: the first response token that each
  # token sees, which directly follows the prompt. None: token 0, always.
  context_BT: Array | None = None
  # What is scored in place of response_BT, which is what was written: the right
  # action after every step of a history, say. None: response_BT.
  target_BT: Array | None = None
  # Real numbers beside the token ids, which params['inputs'] maps to the width
  # of the model and which are added to the embeddings. None: tokens only.
  inputs_BTF: Array | None = None

  @property
  def num_prompts(self) -> int:
    """Groups in the batch."""
    return self.prompt_NP.shape[0]


class GroupSummary(struct.PyTreeNode, kw_only=True):
  """The groups of a round as a selector observes them, each [N, G].

  reward: combined by the task, NaN where the verification failed. right: 1 if
  the response solved its prompt, 0 if not or unknown. length: response tokens.
  entropy: mean of -logp over the tokens that were drawn, in nats, an estimate
  of the entropy of the sampling policy.
  """

  reward_NG: Array
  right_NG: Array
  length_NG: Array
  entropy_NG: Array


class TrainState(struct.PyTreeNode, kw_only=True):
  """The state that an update changes; donated to it, saved in checkpoints."""

  step: Array  # int32, optimizer steps taken
  params: Any  # trainable parameters only
  opt_state: Any
  method_state: dict[str, Any]  # states of stateful pieces, by path
  skipped: Array  # int32, optimizer steps skipped for non-finite gradients
