"""XRPO: prompts without a right sample are sampled after solved ones."""

import dataclasses
from typing import Any

import numpy as np

from rl_jax.checks import checked, ranged
from rl_jax.pieces.piece import CheckContext
from rl_jax.rollouts.rounds import Round, unsolved
from rl_jax.runtime import processes

_CHECKED = 20  # prompts, before the run


@dataclasses.dataclass(frozen=True, kw_only=True)
@checked
class SolvedSeeds:
  """Up to `count` solved prompts with their responses in front of a failed one.

  A store keeps the last right response to each prompt of the run; the most
  alike of other prompts are taken (see rollouts.solved), fewer where the prompt
  would be too long, and the task writes them (`with_examples`). Failed: no
  reward of the group is above solved_above.
  Source: "XRPO: Pushing the Limits of GRPO with Targeted Exploration and
  Exploitation", from reviews. There embeddings say what is alike, which ones
  is not known; here the tokens of the prompts do.
  """

  count: int = ranged(2, 1, static=True)
  solved_above: float = ranged(0.5)  # in units of the reward
  places: int = ranged(1000, 1, static=True)  # of the store, one a prompt

  def check(self, context: CheckContext) -> None:
    """Raises ValueError if not even one solved example fits into a prompt, or
    if the task cannot write one.
    """
    if context.rollout is not None:
      self._check_task(context.task, context.rollout)
    if context.prompts is not None:
      self._check_prompts(context.prompts)

  def _check_task(self, task, rollout):
    if rollout.turns is not None:
      raise ValueError(
        'method.rollout: SolvedSeeds with rollout.turns: episodes are not '
        'examples; set method.rollout.seeds=null'
      )
    if not task.supports('with_examples'):
      raise ValueError(
        'method.rollout: SolvedSeeds needs a task that writes solved examples '
        f'into prompts, but {type(task).__name__} has no method '
        '`with_examples`; set method.rollout.seeds=null'
      )

  def _check_prompts(self, prompts):
    task = prompts.task
    for index in range(min(len(prompts), _CHECKED)):
      example = prompts.example(index)
      solved = ((example, task.target(example)),)
      if prompts.fits(task.with_examples(example, solved)):
        return
    raise ValueError(
      'method.rollout: a prompt after one solved example has more tokens than '
      f'rollout.max_prompt_tokens = {prompts.max_prompt_tokens}; raise it, or '
      'set method.rollout.seeds=null'
    )

  def remember(self, done: Round, sampler: Any) -> None:
    """Stores the first right response to each prompt of the round."""
    right_NG = done.reward_NG > self.solved_above
    own = processes.own(len(right_NG))
    found = []
    for n in range(own.start, own.stop):
      if right_NG[n].any():
        sample = int(right_NG[n].argmax())
        row = (n - own.start) * right_NG.shape[1] + sample
        length = done.responses['length'][n * right_NG.shape[1] + sample]
        ids = done.responses['response'][row, :length]
        found.append([int(done.indices[n]), ids.tolist()])
    for part in processes.gather(found):
      for index, ids in part:
        sampler.memory.add(index, ids)

  def examples(self, done: Round, sampler: Any) -> dict[int, Any]:
    """Failed prompts by place, each preceded by solved examples that fit."""
    failed_N = unsolved(done.reward_NG, self.solved_above)
    seeded = {}
    for n in map(int, np.flatnonzero(failed_N)):
      solved = sampler.memory.nearest(int(done.indices[n]), self.count)
      for first in range(len(solved)):
        example = sampler.task.with_examples(done.examples[n], solved[first:])
        if sampler.fits(example):
          seeded[n] = example
          break
    return seeded
