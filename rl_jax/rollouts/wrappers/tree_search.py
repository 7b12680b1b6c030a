"""MCTS-DPO: a group is the steps that a tree search has tried."""

from collections.abc import Generator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from rl_jax import checks
from rl_jax.checks import ranged
from rl_jax.pieces.ops.masking import by_group, masked_sum
from rl_jax.pieces.piece import CheckContext, piece
from rl_jax.pieces.roles import RolloutWrapper
from rl_jax.rollouts.search_tree import Node, Pair, Search
from rl_jax.runtime import processes
from rl_jax.types import FORCED, PAD, Array, Trajectories

_PROMPT_FIELDS = ('prompt_NP', 'prompt_mask_NP', 'prompt_id_N')


@piece
class TreeSearch(RolloutWrapper):
  """G children for each of 1 + `expansions` nodes of a search tree a prompt.

    U(c) = Q(c) + exploration p(c) sqrt(N(parent)) / (1 + N(c))
    p    = exp(sum of log pi over the step's tokens / tokens^length_power)
    r    = v - v(parent), v(prompt) = 0;  a new child has Q = V(parent) + r
    V    = sum over children of max(1, N) Q / sum of max(1, N)
    Q    = r + discount V

  A step is the next step_tokens tokens. A row is a child: the steps above it
  (FORCED), its own, the only trained one, and the rest of a response, whose
  reward is v; equal steps below a node are one child with the mean of their
  rewards. An iteration goes down by the largest U to a node without children,
  gives it some, and so on until `depth` steps below the root or an end; then
  N, V and Q of the path are backed up, once, as in the release. The visits of
  the root rise by 2 an iteration, those of the other nodes of the path by 1. V
  is 0 as long as a node has no children, so that new ones have Q = r. After
  4 * iterations from the prompt the best child against the worst by Q is a
  pair, and the root moves to the most visited child for `iterations` more,
  `moves` times in all. Once all rows are used, nodes without children are ends.
  Groups have G (1 + expansions) rows; those not drawn are invalid and weigh
  nothing. Fills extras 'forced_B' (all but the children of the prompt),
  'search_pair_B' and 'confidence_B' for preferences.SearchPairs.
  `value` may make v of (reward, mean surprisal of the step in nats), of arrays.
  Source: YuxiXie/MCTS-DPO mcts/mcts.py, trainer.py (formulas compared with the
  release). There v is a self-evaluation, with the outcome at ends only, where
  here a completion is judged; its most visited child is by visits times a
  diversity, here by visits.
  """

  expansions: int = ranged(7, 1, static=True)
  step_tokens: int = ranged(30, 1, static=True)
  iterations: int = ranged(4, 1, static=True)
  moves: int = ranged(8, 1, static=True)  # pairs of a tree at most
  depth: int = ranged(3, 1, static=True)
  exploration: float = ranged(1.0, 0.0)  # w, in units of the reward
  length_power: float = ranged(1.25, 0.0)
  discount: float = ranged(1.0, 0.0, 1.0)
  value: Any = None
  reads_rewards = True

  @property
  def widens(self) -> int:
    """See HintGuided."""
    return 1 + self.expansions

  def check(self, context: CheckContext) -> None:
    """Raises ValueError if a node would have a single child."""
    rollout = context.rollout
    if rollout is None:
      return
    if rollout.group_size < 2:
      raise ValueError(
        'method.rollout: TreeSearch compares the children of a node and needs '
        f'rollout.group_size >= 2, got {rollout.group_size}'
      )

  def extend(
    self, traj: Trajectories, done: Any, sampler: Any
  ) -> tuple[Trajectories, list[Any]]:
    """(all children of all nodes, the rounds of those below the first)."""
    N, G = traj.num_prompts, traj.group_size
    trees = [_Tree(self._search().run()) for _ in range(N)]
    start_N = np.zeros(N, np.int32)
    every, facts = sampler.run(self._widened, traj, start_N)
    self._give(trees, range(N), 0, done.reward_NG, facts)
    rounds = []
    for chunk in range(1, 1 + self.expansions):
      live = {n: tree.wants for n, tree in enumerate(trees) if tree.wants}
      if not live:
        break
      row_N, start_N, live_N = (np.zeros(N, np.int32) for _ in range(3))
      for n, node in live.items():
        row_N[n], start_N[n] = node.row, node.end
        live_N[n] = 1
      serial = np.int32(sampler.next_serial)
      behind = sampler.run(self._behind, every, row_N, start_N, live_N, serial)
      more, found = sampler.grow(behind, done)
      found.reward_NG[live_N == 0] = np.nan
      at = np.int32(chunk * G)
      every, facts = sampler.run(self._placed, every, more, start_N, live_N, at)
      self._give(trees, live, chunk, found.reward_NG, facts)
      rounds.append(found)
    for tree in trees:
      tree.close()
    return sampler.run(self._with_pairs, every, *self._labels(trees, G)), rounds

  def _search(self):
    return Search(
      iterations=self.iterations,
      moves=self.moves,
      depth=self.depth,
      exploration=self.exploration,
      discount=self.discount,
    )

  def _give(self, trees, live, chunk, reward_NG, facts):
    """Sends the nodes of a chunk to the trees that wait for them."""
    facts = processes.read(facts)
    G = reward_NG.shape[1]
    for n in live:
      children = []
      for g in range(G):
        same_G = facts['same_NGG'][n, g] & np.isfinite(reward_NG[n])
        if not same_G[g] or same_G[:g].any():
          continue  # not verified, or a copy
        tokens = max(int(facts['tokens_NG'][n, g]), 1)
        logp = float(facts['logp_NG'][n, g])
        value = float(reward_NG[n][same_G].mean())
        if self.value is not None:
          value = float(self.value(value, -logp / tokens))
        children.append(
          Node(
            row=chunk * G + g,
            end=int(facts['end_NG'][n, g]),
            value=value,
            prior=float(np.exp(logp / tokens**self.length_power)),
            ended=bool(facts['ended_NG'][n, g]),
          )
        )
      trees[n].give(children)

  def _labels(self, trees, G):
    """(signed number of the row's pair, how sure it is), each [B]."""
    pair_NG = np.zeros((len(trees), G * (1 + self.expansions)), np.float32)
    confidence_NG = np.ones_like(pair_NG)
    for n, tree in enumerate(trees):
      for number, pair in enumerate(tree.pairs, start=1):
        pair_NG[n, pair.best.row] = number
        pair_NG[n, pair.worst.row] = -number
        confidence_NG[n, pair.best.row] = pair.confidence
    return pair_NG.ravel(), confidence_NG.ravel()

  def _widened(
    self, traj: Trajectories, start_N: Array
  ) -> tuple[Trajectories, dict[str, Array]]:
    """Groups with room for all children, and facts of the first."""
    traj, facts = self._steps(traj, start_N)
    G, more = traj.group_size, traj.group_size * self.expansions

    def pad(x):
      x = x.reshape(-1, G, *x.shape[1:])
      x = jnp.pad(x, [(0, 0), (0, more)] + [(0, 0)] * (x.ndim - 2))
      return x.reshape(-1, *x.shape[2:])

    return _mapped(pad, traj).replace(group_size=G + more), facts

  def _behind(
    self,
    every: Trajectories,
    row_N: Array,
    start_N: Array,
    live_N: Array,
    first_serial: Array,
  ) -> Trajectories:
    """Rows that wait after the first start_N tokens of a row of each group."""
    N, T = every.num_prompts, every.response_BT.shape[1]
    G = every.group_size // (1 + self.expansions)

    def repeat(x):
      return jnp.repeat(x, G, axis=0)

    row_B = repeat(jnp.arange(N) * every.group_size + row_N)
    kept_BT = jnp.arange(T)[None] < repeat(start_N)[:, None]
    sample_G = jnp.arange(G, dtype=jnp.int32)
    serial_N = first_serial + jnp.arange(N, dtype=jnp.int32)
    zeros_BT = jnp.zeros(kept_BT.shape, jnp.float32)
    ones_B = jnp.ones(N * G, jnp.float32)
    return every.replace(
      group_size=G,
      response_BT=jnp.where(kept_BT, every.response_BT[row_B], 0),
      kind_BT=jnp.where(kept_BT, FORCED, PAD),
      length_B=repeat(start_N),
      finished_B=repeat(live_N) == 0,
      row_id_B2=jnp.stack([repeat(serial_N), jnp.tile(sample_G, N)], axis=1),
      policy_version_B=every.policy_version_B[row_B],
      mask_BT=zeros_BT,
      logp_behaviour_BT=zeros_BT,
      valid_B=ones_B,
      weight_B=ones_B,
      reward_B=None,
      rewards={},
      extras={},
    )

  def _placed(
    self,
    every: Trajectories,
    more: Trajectories,
    start_N: Array,
    live_N: Array,
    at: Array,
  ) -> tuple[Trajectories, dict[str, Array]]:
    """The groups with a chunk of children from row `at`, and its facts."""
    more, facts = self._steps(more, start_N)
    live_B = jnp.repeat(live_N, more.group_size).astype(jnp.float32)
    more = more.replace(
      mask_BT=more.mask_BT * live_B[:, None],
      valid_B=more.valid_B * live_B,
      weight_B=more.weight_B * live_B,
      extras={**more.extras, 'forced_B': jnp.ones_like(live_B)},
    )
    S, G = every.group_size, more.group_size

    def put(x, new):
      x = x.reshape(-1, S, *x.shape[1:])
      new = new.reshape(-1, G, *new.shape[1:])
      x = jax.lax.dynamic_update_slice_in_dim(x, new, at, axis=1)
      return x.reshape(-1, *x.shape[2:])

    return _mapped(put, every, more), facts

  def _steps(self, traj, start_N):
    """(rows of which the own steps are left in the mask, facts of these)."""
    G = traj.group_size
    start_B = jnp.repeat(start_N, G)
    last_B = start_B + self.step_tokens
    end_B = jnp.minimum(last_B, traj.length_B)
    at_1T = jnp.arange(traj.mask_BT.shape[1])[None]
    inside_BT = (at_1T >= start_B[:, None]) & (at_1T < end_B[:, None])
    mask_BT = traj.mask_BT * inside_BT
    step_NGT = by_group(jnp.where(inside_BT, traj.response_BT, -1), G)
    facts = {
      'end_NG': end_B,
      'ended_NG': traj.length_B <= last_B,
      'tokens_NG': mask_BT.sum(1),
      'logp_NG': masked_sum(traj.logp_behaviour_BT, mask_BT, axis=1),
    }
    facts = {name: by_group(x, G) for name, x in facts.items()}
    facts['same_NGG'] = (step_NGT[:, :, None] == step_NGT[:, None]).all(-1)
    forced_B = jnp.zeros_like(traj.weight_B)
    extras = {**traj.extras, 'forced_B': forced_B}
    return traj.replace(mask_BT=mask_BT, extras=extras), facts

  def _with_pairs(
    self, every: Trajectories, pair_B: Array, confidence_B: Array
  ) -> Trajectories:
    """Returns what the pairs read."""
    found = {'search_pair_B': pair_B, 'confidence_B': confidence_B}
    return every.replace(extras={**every.extras, **found})


class _Tree:
  """A search that waits for children of the node `wants`, or is over."""

  def __init__(self, search: Generator[Node, list[Node], list[Pair]]):
    self._search, self.pairs = search, []
    self.wants: Node | None = next(search)

  def give(self, children: list[Node]) -> None:
    """Continues until the next node wants children."""
    try:
      self.wants = self._search.send(children)
    except StopIteration as end:
      self.wants, self.pairs = None, end.value

  def close(self) -> None:
    """Ends the search where no node has children any more."""
    while self.wants is not None:
      self.give([])


def _mapped(function, traj, *others):
  """The trajectories with their rows changed, not their prompts."""

  def bare(t):
    return t.replace(**dict.fromkeys(_PROMPT_FIELDS), group_size=0)

  found = jax.tree.map(function, bare(traj), *map(bare, others))
  kept = checks.values(traj, _PROMPT_FIELDS)
  return found.replace(**kept, group_size=traj.group_size)
