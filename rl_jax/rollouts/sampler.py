"""The generation rounds of an iteration, as rollout pieces see them."""

from typing import Any

import jax.numpy as jnp
import numpy as np

from rl_jax import checks
from rl_jax.episodes.resumed import Recorded
from rl_jax.rollouts.rounds import Round
from rl_jax.runtime import processes
from rl_jax.types import POLICY, Trajectories


class Sampler:
  """Generation rounds of one iteration; each has its own group serials."""

  def __init__(self, collector, params, policy_version, first_serial, score):
    """score: what `collect` scores rows with."""
    self._collector, self._params, self._score = collector, params, score
    self._policy_version = policy_version
    self.next_serial = first_serial
    self.task, self.key = collector.task, collector.key
    self.tokenizer = collector.prompts.tokenizer
    self.row_inputs = collector.jitted(collector.row_inputs)
    self.memory = collector.selector.memory
    self.examples = []  # of the rows that `start` is beginning

  @property
  def group_size(self) -> int:
    """Samples of a prompt."""
    return self._collector.group_size

  @property
  def num_prompts(self) -> int:
    """Prompts of a generation round."""
    return self._collector.num_prompts

  def fits(self, example: Any) -> bool:
    """Returns whether the prompt of a changed example is short enough."""
    return self._collector.prompts.fits(example)

  def start(
    self,
    arrays: list[np.ndarray],
    examples: list[Any],
    transforms: tuple = (),
    piece: Any = None,
  ) -> Trajectories:
    """Responses to encoded prompts of the examples.

    transforms: of the sampling distribution, after those of the method.
    piece: a rollout piece that may begin the rows.
    """
    self.examples = examples
    contexts = None if piece is None else piece.contexts(examples, self)
    if contexts is not None:
      return self.each(contexts, arrays, examples)
    traj = self._collector.engine.start(
      *arrays, self.next_serial, self._policy_version
    )
    if piece is not None:
      traj = piece.begin(traj, self)
    return self._generate(traj, examples, transforms)

  def each(
    self, contexts: list[Any], arrays: list[np.ndarray], examples: list[Any]
  ) -> Trajectories:
    """A response to each context, as rows of the prompts of the examples.

    contexts: G for each prompt in turn; those that are the example itself give
    the tokens that the prompt would have given (E2). arrays: encoded prompts.
    """
    count = len(contexts) // len(examples)
    own = [example for example in examples for _ in range(count)]
    foreign_B = np.asarray(
      [a is not b for a, b in zip(contexts, own, strict=True)], np.float32
    )
    collector = self._collector
    engine = collector.engine.variant((), None, 1)
    traj = engine.start(
      *collector.prompts.arrays(contexts),
      self.next_serial,
      self._policy_version,
    )
    traj = self.run_rows(_numbered, traj, np.int32(count))
    self.next_serial += len(examples)
    traj = collector.runner.play(
      engine, self._params, traj, collector.key, contexts
    )
    return self.run(_in_groups, traj, *arrays, foreign_B)

  def sample_each(
    self, contexts: list[Any], examples: list[Any], indices: np.ndarray
  ) -> tuple[Trajectories, Round]:
    """Verified responses to contexts, see each."""
    arrays = self._collector.prompts.arrays(examples)
    traj = self.each(contexts, arrays, examples)
    return self._collector.verify(traj, examples, indices)

  def sample(
    self, examples: list[Any], indices: np.ndarray, transforms: tuple = ()
  ) -> tuple[Trajectories, Round]:
    """Verified responses to other examples of the same prompts."""
    arrays = self._collector.prompts.arrays(examples)
    traj = self.start(arrays, examples, transforms)
    return self._collector.verify(traj, examples, indices)

  def go_on(self, traj: Trajectories, done: Round) -> Round:
    """Continues unfinished rows of the prompts of `done` and judges them."""
    traj, given_B = self._continued(traj, done)
    judged, _ = self._collector.judge(
      traj, done.examples, done.indices, given_B
    )
    return judged

  def grow(self, traj: Trajectories, done: Round) -> tuple[Trajectories, Round]:
    """Continues rows as `go_on` does, and verifies them."""
    traj, given_B = self._continued(traj, done)
    return self._collector.verify(traj, done.examples, done.indices, given_B)

  def replay(
    self, traj: Trajectories, done: Round
  ) -> tuple[Trajectories, Round]:
    """Verified episodes of the prompts of `done` that continue inside a turn.

    traj: replicated rows that end in their open turn; `turn_BT` of its tokens
    is its number. Turns before it are repeated. Finished rows take no part.
    """
    names = ('response_BT', 'kind_BT', 'turn_BT', 'finished_B')
    host = processes.read(checks.values(traj, names))
    recorded = Recorded(live_B=~host.pop('finished_B'), **host)
    given_B = (host['kind_BT'] == POLICY).sum(axis=1)
    traj = processes.put(traj, self._collector.rows)
    traj = self._generate(traj, done.examples, recorded=recorded)
    return self._collector.verify(traj, done.examples, done.indices, given_B)

  def logp(self, traj: Trajectories) -> Any:
    """log pi(token) of the current policy at the trained tokens, [B, T].

    Of every row under the prompt that it has, whatever it was sampled from. For
    pieces that say `scores`, or there may be no such pass.
    """
    own = self._collector.jitted(_as_own)(traj)
    return self._score(own)[0].logp_old_BT

  def reference_logp(self, traj: Trajectories) -> Any:
    """log pi_ref(token) at the trained tokens, [B, T], as logp.

    For methods that read logp_ref.
    """
    own = self._collector.jitted(_as_own)(traj)
    return self._score(own)[0].logp_ref_BT

  def gradient_norms(self, traj: Trajectories) -> np.ndarray:
    """|gradient of log pi(response)| by the embeddings, float32 [B].

    Of the weights that sample, see models.gradient_norms.
    """
    norms = self._collector.engine.norms
    return processes.read(norms(self._params, traj))

  def run(self, function: Any, *arrays: Any) -> Any:
    """A jitted call; numpy arguments are put on the mesh."""
    return self._collector.jitted(function)(
      *processes.put(arrays, self._collector.replicated)
    )

  def run_rows(
    self, function: Any, traj: Trajectories, *arrays: Any
  ) -> Trajectories:
    """A jitted change of rows that wait to be sampled; they stay split."""
    return self._collector.jitted_rows(function)(
      traj, *processes.put(arrays, self._collector.replicated)
    )

  def write(
    self, traj: Trajectories, new_tokens: int, transforms: tuple = ()
  ) -> Trajectories:
    """new_tokens more at most for each unfinished row; nothing is judged.

    transforms: see start.
    """
    engine = self._collector.engine.variant(transforms, new_tokens)
    return engine.generate(self._params, traj=traj, key=self.key)

  def _continued(self, traj, done):
    """(the rows with their ends, the tokens that they had)."""
    given_B = processes.read(traj.length_B)
    traj = processes.put(traj, self._collector.rows)
    return self._generate(traj, done.examples), given_B

  def _generate(self, traj, examples, transforms=(), **more):
    self.next_serial += traj.num_prompts
    collector = self._collector
    engine = collector.engine
    if transforms:
      engine = engine.variant(transforms)
    return collector.runner.play(
      engine, self._params, traj, collector.key, examples, **more
    )


def _numbered(traj: Trajectories, count: Any) -> Trajectories:
  """Groups of one row with the numbers of groups of `count` rows."""
  first, row_B = traj.row_id_B2[0, 0], jnp.arange(len(traj.row_id_B2))
  ids_B2 = jnp.stack([first + row_B // count, row_B % count], axis=1)
  return traj.replace(row_id_B2=ids_B2.astype(jnp.int32))


def _in_groups(
  traj: Trajectories,
  prompt_NP: Any,
  mask_NP: Any,
  id_N: Any,
  foreign_B: Any,
) -> Trajectories:
  """Groups of one row as rows of these prompts."""
  return traj.replace(
    prompt_NP=prompt_NP,
    prompt_mask_NP=mask_NP,
    prompt_id_N=id_N,
    group_size=len(traj.row_id_B2) // len(prompt_NP),
    extras={**traj.extras, 'foreign_B': foreign_B},
  )


def _as_own(traj: Trajectories) -> Trajectories:
  """No row is foreign, of which score would keep what the sampler reported."""
  extras = dict(traj.extras)
  if 'foreign_B' in extras:
    extras['foreign_B'] = jnp.zeros_like(extras['foreign_B'])
  return traj.replace(extras=extras)
