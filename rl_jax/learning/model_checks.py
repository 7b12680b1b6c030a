"""Checks before anything compiles whether a model has what a method reads."""

from rl_jax.learning import statistics
from rl_jax.method import Method
from rl_jax.models import critic, transformer
from rl_jax.pieces.logits.transforms import read_values
from rl_jax.pieces.roles import LogitTransform
from rl_jax.pieces.statistics import action_values


def check_router(
  method: Method, model: transformer.ModelConfig, spans: int
) -> None:
  """Raises ValueError if a piece reads router statistics that are missing.

  spans: parts of a response on the mesh.
  """
  needs = statistics.model_needs(method)
  if needs.isdisjoint(statistics.ROUTER):
    return
  for wrong, text in (
    (not model.num_experts, 'the model has no experts'),
    (spans > 1, f'mesh.sequence = {spans} splits responses: set it to 1'),
    (
      not needs.isdisjoint(statistics.AFTER),
      'another piece reads values after tokens',
    ),
  ):
    if wrong:
      raise ValueError(
        f'method.losses: a piece reads {statistics.ROUTER_PROBS}, but {text}'
      )


def check_action_values(
  transforms: tuple[LogitTransform, ...],
  method: Method,
  model: transformer.ModelConfig,
) -> None:
  """Raises ValueError if values of every token are read that are not computed.

  transforms: of evaluations.
  """
  acts = read_values((*method.logits, *transforms))
  if not (acts or method.reads_action_values):
    return
  outputs = action_values.num_values(model.vocab_size)
  for wrong, text in (
    (not model.value_head, 'model.value_head = False: set it to True'),
    (
      model.num_values != outputs,
      f'model.num_values = {model.num_values}: set it to {outputs}, for V and '
      f'two Q of each of {model.vocab_size} tokens',
    ),
    (critic.has_own(model), "model.critic = 'own': set it to 'detached'"),
  ):
    if wrong:
      raise ValueError(f'a piece reads values of every token, but {text}')
