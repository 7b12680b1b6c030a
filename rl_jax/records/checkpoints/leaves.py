"""Converts between trees and the flat, named arrays of a checkpoint."""

from typing import Any

from etils import epath
import jax
import numpy as np

from rl_jax.optional import require
from rl_jax.runtime import processes, watchdog


def abstract_tree(tree: Any) -> Any:
  """ShapeDtypeStructs with the shardings of a concrete tree, to restore onto.

  Numpy arrays are returned as they are and restored as numpy arrays.
  """

  def one(leaf):
    if isinstance(leaf, (np.ndarray, np.generic)):
      return np.asarray(leaf)
    return jax.ShapeDtypeStruct(
      leaf.shape, leaf.dtype, sharding=getattr(leaf, 'sharding', None)
    )

  return jax.tree.map(one, tree)


def names(tree: Any) -> tuple[dict[str, Any], Any]:
  """A dict of the leaves by dotted path, in tree order, and the treedef."""
  leaves, treedef = jax.tree_util.tree_flatten_with_path(tree)
  named = {
    jax.tree_util.keystr(path, simple=True, separator='.') or 'value': leaf
    for path, leaf in leaves
  }
  if len(named) != len(leaves):
    raise ValueError('two leaves of the tree have the same dotted path')
  return named, treedef


def is_key(leaf: Any) -> bool:
  """Returns whether the leaf is a typed PRNG key array."""
  return jax.dtypes.issubdtype(leaf.dtype, jax.dtypes.prng_key)


def flatten_for_saving(tree: Any) -> tuple[dict[str, Any], dict[str, Any]]:
  """Arrays by name as Orbax takes them, and a description of all leaves.

  Typed keys are saved as their data; empty arrays only as their description.
  """
  arrays, described = {}, {}
  for name, leaf in names(tree)[0].items():
    if not isinstance(leaf, (jax.Array, np.ndarray, np.generic)):
      raise TypeError(
        f'{name} is a {type(leaf).__name__}, not an array: '
        'put plain Python values into host_state'
      )
    described[name] = {'shape': list(leaf.shape), 'dtype': str(leaf.dtype)}
    if isinstance(leaf, jax.Array) and is_key(leaf):
      described[name]['key'] = str(jax.random.key_impl(leaf))
      leaf = jax.random.key_data(leaf)
    elif isinstance(leaf, (np.ndarray, np.generic)):
      # The caller may write into its array while the copy is being saved.
      leaf = np.array(leaf, copy=True)
    if 0 not in leaf.shape:
      arrays[name] = leaf
  return arrays, described


def check_structure(
  named: dict[str, Any], described: dict[str, Any], step: int, partial: bool
) -> None:
  """Raises ValueError listing the leaves in which the two trees differ."""
  problems = [
    f'{n} is not in the checkpoint' for n in named.keys() - described.keys()
  ]
  if not partial:
    problems += [
      f'{n} is only in the checkpoint' for n in described.keys() - named.keys()
    ]
  for name in named.keys() & described.keys():
    want, have = named[name], described[name]
    if list(want.shape) != have['shape'] or str(want.dtype) != have['dtype']:
      problems.append(
        f'{name} is {have["dtype"]}{have["shape"]} in the checkpoint but '
        f'{want.dtype}{list(want.shape)} here'
      )
  if problems:
    shown = sorted(problems)[:10]
    more = f'; and {len(problems) - 10} more' if len(problems) > 10 else ''
    raise ValueError(
      f'checkpoint {step} does not fit this configuration: '
      + '; '.join(shown)
      + more
    )


def _as_numpy(leaf: Any) -> bool:
  return isinstance(leaf, np.ndarray) or is_key(leaf)


def _sharding(leaf: Any) -> jax.sharding.Sharding:
  sharding = getattr(leaf, 'sharding', None)
  return sharding or jax.sharding.SingleDeviceSharding(jax.devices()[0])


def restore_target(leaf: Any) -> Any:
  """The item that Orbax restores onto."""
  if _as_numpy(leaf):
    return np.empty(0)
  return jax.ShapeDtypeStruct(leaf.shape, leaf.dtype, sharding=_sharding(leaf))


def orbax() -> Any:
  """The module orbax.checkpoint."""
  return require('orbax.checkpoint', 'a checkpoint')


def restore_args(leaf: Any) -> Any:
  """Returns how Orbax restores one leaf; shapes and dtypes were compared
  before.
  """
  ocp = orbax()
  if _as_numpy(leaf):
    return ocp.RestoreArgs(restore_type=np.ndarray)
  return ocp.ArrayRestoreArgs(
    sharding=_sharding(leaf), global_shape=leaf.shape, dtype=leaf.dtype
  )


def finish_leaf(leaf: Any, value: Any, described: dict[str, Any]) -> Any:
  """Makes keys of key data, and empty arrays of their description."""
  if isinstance(leaf, np.ndarray):
    if value is None:
      return np.zeros(described['shape'], described['dtype'])
    return np.asarray(value)
  if is_key(leaf):
    key = jax.random.wrap_key_data(value, impl=described['key'])
    return processes.put(key, _sharding(leaf))
  if value is None:
    return processes.put(np.zeros(leaf.shape, leaf.dtype), _sharding(leaf))
  return value


def read(
  checkpointer: Any,
  path: epath.Path,
  named: dict[str, Any],
  described: dict[str, Any],
) -> list[Any]:
  """The values of `named`, in its order, read from an Orbax directory.

  checkpointer: an AsyncCheckpointer of Orbax.
  """
  wanted = {n: x for n, x in named.items() if 0 not in described[n]['shape']}
  arguments = orbax().args.PyTreeRestore(
    item={n: restore_target(x) for n, x in wanted.items()},
    restore_args={n: restore_args(x) for n, x in wanted.items()},
    partial_restore=True,
  )
  # Transfers are intended here, whatever guard is set.
  with jax.transfer_guard('allow'):
    with watchdog.checkpointing():
      values = checkpointer.restore(path, args=arguments) if wanted else {}
    return [
      finish_leaf(x, values.get(n), described[n]) for n, x in named.items()
    ]
