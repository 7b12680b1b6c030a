"""The platform of programs: an argument of tracing, never asked of a process.

A program for a TPU may be traced and compiled on a machine that has only a CPU.
So whatever depends on the platform reads it from the model (`cfg.platform`) or
from the devices of a mesh; only `Platform.of_process` asks JAX where this
process runs.
"""

import dataclasses
from typing import Any

import jax

NAMES = ('cpu', 'cuda', 'rocm', 'tpu')


@dataclasses.dataclass(frozen=True)
class Platform:
  """The kind of device that a program is compiled for.

  steady_sums: sums over the numbers of a row have an order that does not depend
  on the number of rows (models.products.row_sums).
  """

  name: str = 'cpu'  # one of NAMES
  capability: tuple[int, ...] = ()  # of CUDA, as (9, 0); () if unknown
  steady_sums: bool = False

  @classmethod
  def of(cls, device: Any) -> 'Platform':
    """Returns the platform of a jax.Device, or of one of a topology."""
    if device.platform not in ('gpu', 'cuda', 'rocm'):
      return cls(device.platform)
    if 'rocm' in device.client.platform_version.lower():
      return cls('rocm')
    numbers = str(getattr(device, 'compute_capability', '')).split('.')
    known = all(number.isdigit() for number in numbers)
    return cls('cuda', tuple(map(int, numbers)) if known else ())

  @classmethod
  def of_process(cls) -> 'Platform':
    """Returns the platform on which this process runs programs."""
    return cls.of(jax.devices()[0])

  @classmethod
  def of_mesh(cls, mesh: jax.sharding.Mesh | None) -> 'Platform':
    """Returns that of the devices of a mesh; without devices, the process's."""
    if isinstance(mesh, jax.sharding.Mesh):
      return cls.of(mesh.devices.flat[0])
    return cls.of_process()

  @property
  def is_gpu(self) -> bool:
    """Returns whether programs run on a GPU, of NVIDIA or AMD."""
    return self.name in ('cuda', 'rocm')

  @property
  def is_cpu(self) -> bool:
    """Returns whether programs run on the processor of the host."""
    return self.name == 'cpu'
