"""Tables that map the tensors of weight files to the parameter tree.

A rule names a tensor of the file, a leaf of our tree, and the axes of both:
'HK D' -> 'D H K' splits the rows into heads and moves the columns in front.
The letters are sizes (D width, H heads, ...), so the table also states the
shape that the file must have, and reading it backwards exports.
"""

from collections.abc import Callable, Iterable, Mapping
import dataclasses
import math
from typing import Any, NamedTuple

from flax import traverse_util
import numpy as np

from rl_jax.models import transformer
from rl_jax.models.files import placement
from rl_jax.models.files.placement import LeafReader
from rl_jax.models.transformer import ModelConfig
from rl_jax.runtime import mesh as mesh_lib


class Rule(NamedTuple):
  """One row of a table; `{}` in the name: the layer, and then the expert."""

  name: str
  path: str  # below params['model'], joined by '/'
  file_axes: str
  axes: str  # of one layer, of one expert


@dataclasses.dataclass(frozen=True)
class StoredTensor:
  """A tensor in a file, read on demand."""

  shape: tuple[int, ...]
  origin: str  # the file, for messages
  read: Callable[[slice], np.ndarray]  # of the rows, or numbers, of a slice


def sizes(cfg: ModelConfig) -> dict[str, int]:
  """The letters of the tables; C, R: the two halves of a rotary head."""
  return {
    'V': cfg.vocab_size,
    'D': cfg.width,
    'H': cfg.num_heads,
    'J': cfg.num_kv_heads,
    'K': cfg.head_size,
    'F': cfg.mlp_size,
    'E': cfg.num_experts,
    'C': 2,
    'R': cfg.head_size // 2,
  }


def axes_shape(axes: str, size: Mapping[str, int]) -> tuple[int, ...]:
  """'HK D' -> (heads * head size, width)."""
  return tuple(math.prod(size[c] for c in group) for group in axes.split())


def rearrange(
  array: np.ndarray, source: str, target: str, size: Mapping[str, int]
) -> np.ndarray:
  """Splits, permutes and joins axes; exactly undone by swapping the names."""
  letters = source.replace(' ', '')
  order = [letters.index(c) for c in target.replace(' ', '')]
  split = array.reshape([size[c] for c in letters])
  return split.transpose(order).reshape(axes_shape(target, size))


def used_rules(cfg: ModelConfig, rules: Iterable[Rule]) -> tuple[Rule, ...]:
  """The rules whose leaf this model has; every leaf has one."""
  leaves = set(
    traverse_util.flatten_dict(transformer.specs(cfg)['model'], sep='/')
  )
  used = tuple(rule for rule in rules if rule.path in leaves)
  unnamed = leaves - {rule.path for rule in used}
  if unnamed:
    raise ValueError(
      f'this file format has no tensors for {sorted(unnamed)} of {cfg}'
    )
  return used


def tensor_names(cfg: ModelConfig, rule: Rule) -> list[str]:
  """The rule's tensors: one, one per layer, or one per layer and expert."""
  stacks = _stacks(cfg, rule)
  return [rule.name.format(*place) for place in np.ndindex(*stacks)]


def _stacks(cfg: ModelConfig, rule: Rule) -> tuple[int, ...]:
  """The leading sizes that the leaf has, but no tensor."""
  return (cfg.num_layers, cfg.num_experts)[: rule.name.count('{}')]


def match(
  cfg: ModelConfig,
  rules: Iterable[Rule],
  tensors: Mapping[str, StoredTensor],
  origin: str,
) -> dict[str, LeafReader]:
  """Checks every tensor of the files and gives readers for the leaves.

  Raises: ValueError naming tensors that are missing, left over or of the
    wrong shape, and their file.
  """
  size = sizes(cfg)
  used = used_rules(cfg, rules)
  expected = {name: rule for rule in used for name in tensor_names(cfg, rule)}
  problems = [f'{name} is missing' for name in expected if name not in tensors]
  for name, tensor in tensors.items():
    if name not in expected:
      problems.append(f'{name} ({tensor.origin}) has no place in the model')
      continue
    shape = axes_shape(expected[name].file_axes, size)
    if tensor.shape != shape:
      problems.append(
        f'{name} ({tensor.origin}) has shape {tensor.shape}, not {shape}'
      )
  if problems:
    more = f'\n  and {len(problems) - 8} more' if len(problems) > 8 else ''
    raise ValueError(
      f'{origin} does not fit its configuration:\n  '
      + '\n  '.join(problems[:8])
      + more
    )
  return {
    f'model/{rule.path}': _leaf_reader(cfg, rule, tensors) for rule in used
  }


def _leaf_reader(cfg, rule, tensors) -> LeafReader:
  stacks = _stacks(cfg, rule)
  names = np.array(tensor_names(cfg, rule)).reshape(stacks)
  lead = len(stacks)
  # The first letter of the file is a separate axis of the leaf: for a part of
  # that axis only the corresponding rows of the file are read.
  letter = rule.file_axes[0]
  axis = lead + rule.axes.split().index(letter)

  def one(name, index):
    start, stop, _ = index[axis].indices(sizes(cfg)[letter])
    size = {**sizes(cfg), letter: stop - start}
    (rows, *_) = axes_shape(rule.file_axes, size)
    each = rows // max(stop - start, 1)
    array = tensors[name].read(slice(start * each, stop * each))
    array = rearrange(array, rule.file_axes, rule.axes, size)
    rest = (*index[lead:axis], slice(None), *index[axis + 1 :])
    return array[rest]

  def read(index):
    chosen = names[index[:lead]]
    parts = [one(name, index) for name in chosen.flat]
    stacked = parts[0][None] if len(parts) == 1 else np.stack(parts)
    return stacked.reshape(*chosen.shape, *parts[0].shape)

  return LeafReader(read, (*range(lead), axis))


def fill(
  cfg: ModelConfig,
  readers: Mapping[str, LeafReader],
  mesh: Any = None,
  origin: str = 'the files',
) -> dict[str, Any]:
  """The parameters, read in blocks straight to their devices.

  With a mesh each device gets its shard only. However large a leaf is, the
  host holds a few blocks (see placement).

  Raises: ValueError naming the leaves that nothing reads, or a leaf of origin
    with numbers that are not finite.
  """
  specs = transformer.specs(cfg)
  flat: dict[str, Any] = traverse_util.flatten_dict(specs, sep='/')
  missing = [path for path in flat if path not in readers]
  if missing:
    raise ValueError(
      f'no file holds {missing}: initialise them after loading (adapters and '
      'value heads start with a run)'
    )
  shardings: dict[str, Any] = {}
  if mesh is not None:
    layouts = mesh_lib.param_shardings(specs, mesh)
    shardings.update(traverse_util.flatten_dict(layouts, sep='/'))
  placed = {
    path: placement.place(
      _checked(readers[path], f'{origin}: {path}'),
      spec.shape,
      spec.dtype,
      shardings.get(path),
    )
    for path, spec in flat.items()
  }
  return traverse_util.unflatten_dict(placed, sep='/')


def _checked(reader: LeafReader, name: str) -> LeafReader:
  def read(index):
    numbers = reader.read(index)
    if not np.isfinite(numbers).all():
      raise ValueError(f'{name} has numbers that are not finite')
    return numbers

  return reader._replace(read=read)
