"""CoS(M+O)S: the value of a step is moderate surprise less incoherence."""

import dataclasses

import numpy as np

from rl_jax.checks import checked, ranged


@dataclasses.dataclass(frozen=True, kw_only=True)
@checked
class StepCuriosity:
  """v = 1 - ((s - target) / width)^2 - incoherence (1 - reward).

  s: mean surprisal of the step's tokens under the policy that samples, in nats;
  concave in it, with the maximum at `target`. The reward is that of the
  response that holds the step, of the task and its judges: 1 is coherent.
  Source: "CoS(M+O)S: Curiosity and RL-Enhanced MCTS for Exploring Story Space
  via LLMs", reconstructed from the abstract; all constants are ours, and a rule
  or a judge takes the place of the learned scorer.
  """

  target: float = ranged(0.3, 0.0)  # nats a token
  width: float = ranged(0.5, 0.0, open_low=True)  # nats a token
  incoherence: float = ranged(2.0, 0.0)

  def __call__(
    self, reward: np.ndarray | float, surprisal: np.ndarray | float
  ) -> np.ndarray | float:
    """The value; arguments of equal shape."""
    away = (surprisal - self.target) / self.width
    return 1.0 - away**2 - self.incoherence * (1.0 - reward)
