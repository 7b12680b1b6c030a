"""Evaluates a method's losses on rows, without a gradient or a step."""

from rl_jax.learning import objective as objective_lib
from rl_jax.learning import score as score_lib
from rl_jax.learning import statistics as statistics_lib
from rl_jax.learning.batch import make_batch
from rl_jax.learning.statistics import Forward
from rl_jax.learning.update import Batch
from rl_jax.method import LOSS_SLOTS
from rl_jax.types import LEARNED, Metrics, TrainState


def measure(forward: Forward, state: TrainState, batch: Batch) -> Metrics:
  """The loss of the whole batch as `loss`, and the metrics of its pieces."""
  method, params = batch.method, {**batch.frozen, **state.params}
  traj, _ = score_lib.score(forward, params, batch.traj, method)
  needs = statistics_lib.model_needs(method, LOSS_SLOTS)
  stats = score_lib.scored_statistics(traj, needs | {statistics_lib.LOGP})
  traj, states, _ = make_batch(method, traj, state.method_state)
  learned = state.params.get(LEARNED, {})
  loss, metrics, _ = objective_lib.terms(
    method, stats, traj, batch.key, states, learned
  )
  return {**objective_lib.reduce_metrics(metrics, traj), 'loss': loss}
