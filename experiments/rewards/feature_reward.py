"""A reward that is linear in a few features of a response, from comparisons.

Source: the domain-knowledge reward model of e-commerce opinion summarisation,
by its abstract (940 pairs); reconstructed. There a network with one hidden
layer is over the features; here it has none, so that signs can be read.
"""

from typing import Any

import numpy as np


def fit(gap_EF: np.ndarray, ridge: float, steps: int = 50) -> np.ndarray:
  """w of r(x, y) = sum_f w_f phi_f(x, y), by the loss of Bradley and Terry.

    mean over pairs of -ls(w . gap) + ridge / 2 |w|^2, by Newton's method

  gap_EF: features of the better response less those of the worse one. The
  features are data: nothing of what computes them is trained. ls is the
  logarithm of the sigmoid. A step that would raise the loss is halved.
  """
  E, F = gap_EF.shape

  def loss(w):
    return np.logaddexp(0.0, -gap_EF @ w).mean() + 0.5 * ridge * (w @ w)

  w_F = np.zeros(F)
  for _ in range(steps):
    wrong_E = 1.0 / (1.0 + np.exp(gap_EF @ w_F))  # P(the worse one is better)
    gradient_F = ridge * w_F - gap_EF.T @ wrong_E / E
    curvature_E = wrong_E * (1.0 - wrong_E)
    hessian_FF = (gap_EF.T * curvature_E) @ gap_EF / E + ridge * np.eye(F)
    step_F = np.linalg.lstsq(hessian_FF, gradient_F)[0]
    size = 1.0
    while size > 1e-6 and loss(w_F - size * step_F) > loss(w_F):
      size /= 2
    w_F = w_F - size * step_F
    if np.abs(step_F).max(initial=0.0) < 1e-10:
      break
  return w_F


def accuracy(gap_EF: np.ndarray, w_F: np.ndarray) -> float:
  """Returns how often the better response has more reward; ties count a
  half.
  """
  return float((0.5 * (1 + np.sign(gap_EF @ w_F))).mean())


def gaps(task: Any, names: list[str], most: int) -> np.ndarray:
  """Features of the chosen less those of the rejected response, [E, F]."""
  rows = []
  for i in range(min(most, task.num_prompts('train'))):
    example = task.example('train', i)
    found = {}
    for recorded in task.recorded(example):
      if not recorded.text:
        raise ValueError('--config: features are of texts, not conversations')
      try:
        components = task.reward(example, recorded.text)
      except Exception as error:
        what = f'{type(error).__name__}: {error}'
        raise ValueError(f'--reward: of row {i}: {what}') from error
      found[recorded.label] = [components[name] for name in names]
    if {0, 1} <= set(found):
      rows.append(np.subtract(found[1], found[0]))
  if len(rows) < 10:
    raise ValueError(f'--config: {len(rows)} pairs with labels, at least 10')
  return np.array(rows, float)
