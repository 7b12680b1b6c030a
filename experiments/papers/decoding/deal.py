"""Decoding by a heuristic: cells that a walk sees, against its log-prob.

  python -m experiments.train --config=configs/worlds/coverage.py --method=subpo
    --set=iterations=40 --workdir=runs/coverage_begun
  python -m experiments.papers.decoding.deal --checkpoint=runs/coverage_begun
  python -m experiments.train --config=configs/worlds/coverage.py --method=ppo
    --set=model.value_head=True
    --set="task.reward_weights={'coverage': 1.0}" --workdir=runs/critic
  python -m experiments.papers.decoding.deal --checkpoint=runs/coverage_begun
    --values=runs/critic --tokens=0,2

For a run on worlds.Coverage. Of each walk the first moves are given, in every
way that meets no cell twice; the policy of the run continues it by
decoding.look_ahead with h = the share of cells that the walk has seen, or the
value head of another model after what it has looked ahead. Prints
a JSON line for every weight and number of tokens looked ahead, means over the
walks: `coverage` and `outcome` of the task, `logp` of the response under the
policy, and `seconds` of the processor for a second call. Weight 0 is beam
search. The line `best_of` takes the response of largest h among so many draws.
Source: "DeAL: Decoding-time Alignment for Large Language Models",
reconstructed from the abstract: beams, candidates and weights are ours.
Cost: 17 CPU seconds for the run, 25 for each call of the command.
Expected: with seed 0 beam search sees 0.43 of the cells, a draw 0.72, the best
of 64 draws 0.95. At weight 3 the search sees 0.75 without looking ahead and
0.92 with two tokens, at weight 30 it is 0.98 and 0.92: this h is better known
from the cells seen than from a greedy walk of a bad policy. With
--component=outcome, which is 0 before the last move, nothing is found without
looking ahead, and walks that meet no cell twice are 14% with all 9 tokens. The
critic of PPO is a poor h: up to weight 10 nothing changes, at 30 it is 0.49.
"""

from collections.abc import Callable, Iterator, Sequence
import functools
import itertools
import json
import time
from typing import Any

from absl import app, flags
import jax
import jax.numpy as jnp
import numpy as np

from experiments.flags import configuration
from experiments.papers.decoding import searches
from rl_jax import decoding, models
from rl_jax.checks import INT32
from rl_jax.decoding.look_ahead import Heuristic
from rl_jax.measures import reward_heuristic
from rl_jax.pieces.ops.masking import by_group
from rl_jax.runs import directory, reward_models
from rl_jax.runs import policy as policy_lib
from rl_jax.runtime import mesh as mesh_lib
from rl_jax.types import Array, Trajectories
from rl_jax.worlds import Coverage

_CHECKPOINT = flags.DEFINE_string(
  'checkpoint', None, 'Work directory of a run.', required=True
)
_COMPONENT = flags.DEFINE_enum(
  'component', 'coverage', ('coverage', 'outcome'), 'That is h.'
)
_VALUES = flags.DEFINE_string(
  'values', None, 'A model whose value head is h, in place of --component.'
)
_WEIGHTS = flags.DEFINE_list(
  'weights', ['0', '3', '10', '30'], 'Of h, in nats.'
)
_TOKENS = flags.DEFINE_list('tokens', ['0', '2', '9'], 'Looked ahead.')
_count = functools.partial(
  flags.DEFINE_integer, lower_bound=1, upper_bound=INT32
)
_BEAMS = _count('beams', 2, 'Kept of a prompt.')
_CANDIDATES = _count('candidates', 4, 'Continuations of a beam.')
_DRAWS = _count('draws', 64, 'Of best_of.')
_GIVEN = flags.DEFINE_integer(
  'given', 3, 'Moves of a walk that are given.', lower_bound=1
)


def begun_walks(task: Coverage, moves: int) -> list[str]:
  """All walks of so many moves that meet no cell twice."""
  found = map(''.join, itertools.product('NESW', repeat=moves))
  return [walk for walk in found if all(task.gains(walk))]


def covered(task: Coverage, tokenizer: Any) -> Callable[..., dict[str, Array]]:
  """(given_BM, response_BT, length_B) -> components of given + response."""

  def components(given_BM, response_BT, length_B):
    walk_BT = jnp.concatenate([given_BM, response_BT], axis=1)
    length_B += given_BM.shape[1]
    return task.reward_device(walk_BT, length_B, None, None, tokenizer)

  return components


def started(prompts: Sequence[Sequence[int]], group_size: int, tokens: int):
  """Empty rows of prompts of equal length."""
  return decoding.start_trajectories(
    np.array(prompts),
    np.ones(np.shape(prompts)),
    np.arange(len(prompts)),
    group_size=group_size,
    max_response_tokens=tokens,
  )


def best_of(
  traj: Trajectories, results: dict[str, Array], component: str
) -> tuple[Trajectories, dict[str, Array]]:
  """The row of the largest h of each group, the first of equal ones."""
  G = traj.group_size
  best_N = by_group(results[component], G).argmax(axis=1)
  row_N = np.arange(traj.num_prompts) * G + best_N
  kept = traj.replace(
    logp_behaviour_BT=traj.logp_behaviour_BT[row_N],
    mask_BT=traj.mask_BT[row_N],
  )
  return kept, jax.tree.map(lambda x: x[row_N], results)


def timed(
  function: Callable[..., Any], *arguments: Any
) -> tuple[Any, dict[str, float]]:
  """(results of a second call, its processor seconds)."""
  jax.block_until_ready(function(*arguments))
  begun = time.process_time()
  found = jax.block_until_ready(function(*arguments))
  return found, {'seconds': round(time.process_time() - begun, 3)}


def _encoded(walks, tokenizer):
  """(tokens of the cells that were walked, those of the prompts)."""
  given_NM = np.array([tokenizer.encode(walk) for walk in walks], np.int32)
  return given_NM, [tokenizer.encode('@' + walk) for walk in walks]


def _by_rule(components: Callable[..., Any]) -> Heuristic:
  """The component of --component, of which `components` is the function."""

  def heuristic(*row: Any):
    return components(*row)[_COMPONENT.value]

  return heuristic


def lines(
  task: Coverage,
  model: models.ModelConfig,
  params: Any,
  tokenizer: Any,
  values: tuple[models.ModelConfig, Any] | None,
) -> Iterator[dict[str, float]]:
  """All searches, then draws. values: model and parameters of --values."""
  given_NM, prompts = _encoded(begun_walks(task, _GIVEN.value), tokenizer)
  limit = task.steps - _GIVEN.value + 1  # and the end token
  sampling = decoding.SamplingConfig(eos_ids=tuple(tokenizer.eos_ids))
  components = covered(task, tokenizer)
  empty = started(prompts, 1, limit)
  if values is None:
    heuristic, inputs = _by_rule(components), given_NM
  else:
    heuristic = reward_heuristic.reward_heuristic(*values)
    inputs = reward_heuristic.prompts(empty)

  search = searches.make_search(
    model,
    empty,
    sampling,
    heuristic,
    inputs,
    lambda traj: components(given_NM, traj.response_BT, traj.length_B),
    beams=_BEAMS.value,
    candidates=_CANDIDATES.value,
  )

  @jax.jit
  def draw(params):
    traj = decoding.generate(
      params,
      model,
      started(prompts, _DRAWS.value, limit),
      jax.random.key(0),
      sampling,
      max_new_tokens=limit,
    )
    given_BM = jnp.repeat(given_NM, _DRAWS.value, axis=0)
    return traj, components(given_BM, traj.response_BT, traj.length_B)

  for tokens in searches.numbers(_TOKENS, int, 0):
    for weight in searches.numbers(_WEIGHTS, float, -INT32):
      found, seconds = timed(search, params, weight, tokens)
      yield {
        'tokens': tokens,
        'weight': weight,
        **searches.summary(*found),
        **seconds,
      }
  (traj, found), seconds = timed(draw, params)
  yield {'best_of': 1, **searches.summary(traj, found)}
  kept = best_of(traj, found, _COMPONENT.value)
  yield {'best_of': _DRAWS.value, **searches.summary(*kept), **seconds}


def main(argv: Sequence[str]) -> None:
  """Loads, decodes, prints."""
  del argv
  searches.numbers(_WEIGHTS, float, -INT32)
  searches.numbers(_TOKENS, int, 0)
  task = directory.saved_config(_CHECKPOINT.value).task
  if not isinstance(task, Coverage):
    raise app.UsageError(
      f'--checkpoint: the task is {type(task).__name__}, not Coverage'
    )
  if _GIVEN.value >= task.steps:
    raise app.UsageError(
      f'--given={_GIVEN.value} must be below the {task.steps} moves of a walk'
    )
  mesh = mesh_lib.make_mesh(mesh_lib.MeshConfig(), jax.devices()[:1])
  jax.set_mesh(mesh)
  model, params, tokenizer = policy_lib.load_checkpoint(
    _CHECKPOINT.value, mesh, None
  )
  values = None
  if _VALUES.value is not None:
    *critic, other = policy_lib.load_checkpoint(_VALUES.value, mesh, None)
    values = critic[0], critic[1]
    reward_models.check_tokens(
      '--values', tokenizer, other, values[0].vocab_size
    )
  for line in lines(task, model, params, tokenizer, values):
    print(json.dumps(line))


if __name__ == '__main__':
  configuration.run(main)
