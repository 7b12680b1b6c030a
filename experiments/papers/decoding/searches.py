"""Programs that print a line for each weight of a heuristic."""

from collections.abc import Callable
import functools
from typing import Any

from absl import app
import jax

from rl_jax import models
from rl_jax.checks import INT32
from rl_jax.decoding.look_ahead import Heuristic, LookAheadConfig, look_ahead
from rl_jax.decoding.sampling import SamplingConfig
from rl_jax.types import Array, Trajectories


def make_search(
  model: models.ModelConfig,
  empty: Trajectories,
  sampling: SamplingConfig,
  heuristic: Heuristic,
  inputs: Any,
  measure: Callable[[Trajectories], Any],
  *,
  beams: int,
  candidates: int,
) -> Callable[..., tuple[Trajectories, Any]]:
  """A jitted (params, weight, tokens) -> (rows, what `measure` says of them).

  Other arguments are those of look_ahead; tokens, which are looked ahead, are
  static. Rows may fill all places of the empty ones.
  """

  @functools.partial(jax.jit, static_argnames='tokens')
  def search(params, weight, tokens):
    traj = look_ahead(
      params,
      model,
      empty,
      sampling,
      heuristic,
      inputs,
      weight=weight,
      search=LookAheadConfig(
        beams=beams,
        candidates=candidates,
        tokens=tokens,
        max_new_tokens=empty.response_BT.shape[1],
      ),
    )
    return traj, measure(traj)

  return search


def summary(traj: Trajectories, results: dict[str, Array]) -> dict[str, float]:
  """Means over rows, rounded."""
  logp_B = (traj.logp_behaviour_BT * traj.mask_BT).sum(axis=1)
  means = {**results, 'logp': logp_B}
  return {name: round(float(x.mean()), 4) for name, x in means.items()}


def numbers(flag: Any, kind: type, least: float) -> list[Any]:
  """The values of a list, each of a `kind`, as int, and of at least so much.

  Raises: UsageError for others, and for none.
  """
  try:
    found = [kind(text) for text in flag.value]
  except ValueError:
    found = []
  if not found or not all(least <= x <= INT32 for x in found):
    raise app.UsageError(
      f'--{flag.name}={",".join(flag.value)}: expected numbers from {least} to '
      f'{INT32}, separated by commas'
    )
  return found
