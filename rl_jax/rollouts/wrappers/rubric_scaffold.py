"""RuscaRL: samples see falling shares of the rubric that grades them."""

from typing import Any

import numpy as np

from rl_jax.checks import INT32, ranged
from rl_jax.pieces.piece import CheckContext, piece
from rl_jax.rollouts.wrappers.guided import as_without_hint
from rl_jax.rollouts.wrappers.own_contexts import OwnContexts
from rl_jax.tasks import draws
from rl_jax.types import Trajectories, static


@piece
class RubricScaffold(OwnContexts):
  """Sample k of G sees the share a_k b_t of the criteria in its prompt.

    a_k = (G - 1 - k) / (G - 1),  b_t = 1 / (1 + exp(steepness (x - midpoint))),
    x = (t - 1) / (rollouts - 1) for rollout t, from 1; a = 1 for G = 1

  It sees round(share * n) of n criteria, drawn for each sample. Rows are
  trained under the prompt without criteria. With `corrected` ratios divide by
  the probability under the prompt that drew the row; else by that without
  criteria, as GRPO on those rows does, which costs a forward pass. Later
  rollouts have the share of the last one; every round of dynamic sampling
  counts as a rollout. A prompt that is too long with its criteria shows none.
  The task writes `rubric` and `with_rubric`.
  Source: RuscaRL, vllm_rollout_spmd.py (by a digest of the code); which
  probability divides is ours.
  """

  rollouts: int = ranged(350, 1, INT32)
  midpoint: float = ranged(0.2, 0.0, 1.0)
  steepness: float = ranged(125.0, 0.0)
  corrected: bool = static(default=False)

  @property
  def scores(self) -> bool:
    """Returns whether it reads log-probs of the policy before the update."""
    return not self.corrected

  @property
  def extends(self) -> bool:
    """Returns whether it changes the log-probs of judged rows."""
    return not self.corrected

  def check(self, context: CheckContext) -> None:
    """Raises ValueError if the task has no rubric, or one that is too long."""
    super().check(context)
    task = context.task
    if task is not None and not (
      task.supports('rubric') and task.supports('with_rubric')
    ):
      raise ValueError(
        'method.rollout: RubricScaffold needs a task with criteria, but '
        f'{type(task).__name__} has no methods `rubric` and `with_rubric`'
      )
    if context.prompts is not None:
      own = context.prompts.task
      context.prompts.check(lambda x: own.with_rubric(x, own.rubric(x)))

  def _share(self, rollout: int, sample: int, group_size: int) -> float:
    """The share of the criteria that a sample sees; rollouts count from 1."""
    of_group = 1.0
    if group_size > 1:
      of_group = (group_size - 1 - sample) / (group_size - 1)
    done = min((rollout - 1) / max(self.rollouts - 1, 1), 1.0)
    exponent = float(self.steepness) * (done - float(self.midpoint))
    return of_group / (1.0 + float(np.exp(min(exponent, 500.0))))

  def contexts(self, examples: Any, sampler: Any) -> list[Any]:
    """The examples with the criteria of each sample."""
    count, task = sampler.group_size, sampler.task
    rollout = 1 + sampler.next_serial // sampler.num_prompts
    found = []
    for place, example in enumerate(examples):
      items = task.rubric(example)
      for sample in range(count):
        size = round(self._share(rollout, sample, count) * len(items))
        serial = sampler.next_serial + place
        own = _drawn(items, size, (serial, sample))
        shown = task.with_rubric(example, own) if own else example
        found.append(shown if sampler.fits(shown) else example)
    return found

  def extend(
    self, traj: Trajectories, done: Any, sampler: Any
  ) -> tuple[Trajectories, list[Any]]:
    """(rows whose ratios are those without criteria, no further rounds)."""
    del done
    if self.corrected:
      return traj, []
    return sampler.run(as_without_hint, traj, sampler.logp(traj)), []


def _drawn(items: Any, size: int, counters: tuple[int, int]) -> list[Any]:
  """So many different items, drawn, in their order."""
  stream = draws.Draws('rubric scaffold', *counters)
  key = [stream.uniform() for _ in items]
  chosen = sorted(range(len(items)), key=lambda place: key[place])[:size]
  return [items[place] for place in sorted(chosen)]
