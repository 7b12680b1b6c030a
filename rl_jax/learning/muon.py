"""The weights of a model that Muon orthogonalises, and their axes.

By default Muon would take every array of two axes: embeddings, and the scales
of norms [L, D], but no weight of a layer, as these are stacked.
"""

from typing import Any

import jax

from rl_jax.models import lora

_HEADS = ('wq', 'wk', 'wv')  # outputs [heads, head size]


def matrices(params: Any) -> Any:
  """MuonDimensionNumbers of the matrices, None of what Adam steps.

  Matrices are the weights of layers that may have adapters, and adapters, each
  of its own layer and expert: axes in front of inputs and outputs are stacks.
  """
  return jax.tree.map_with_path(_dimensions, params)


def _dimensions(path, weight):
  from optax.contrib import MuonDimensionNumbers  # slow, and rarely needed

  names = [x.key for x in path if isinstance(x, jax.tree_util.DictKey)]
  known = [name for name in names if name in lora.TARGETS]
  if not known:
    return None
  inputs = lora.num_inputs(known[0])
  outputs = 2 if known[0] in _HEADS else 1
  inputs = 1 if names[-1] == 'b' else inputs  # of rank
  outputs = 1 if names[-1] == 'a' else outputs
  axes = tuple(range(weight.ndim - inputs - outputs, weight.ndim))
  return MuonDimensionNumbers(axes[:inputs], axes[inputs:])
