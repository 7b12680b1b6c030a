"""Accelerators that programs are compiled for on a machine that has none.

The compilers of TPU and GPU run on a CPU. `Target.devices` describes the chips
to them; programs that are lowered on a mesh of these devices compile as they
would there, and cannot be run.
"""

import dataclasses
import importlib.util
import math
import os
import pathlib
import re
from typing import Any

from rl_jax.planning.roofline import Card
from rl_jax.runtime.platform import Platform


@dataclasses.dataclass(frozen=True)
class TpuChip:
  """A TPU: peaks from its data sheet, and the name of its topologies."""

  card: Card
  dimensions: int  # of a slice
  cores: int  # JAX devices of a chip


@dataclasses.dataclass(frozen=True, kw_only=True)
class GpuChip:
  """A GPU: peaks from its data sheet, and what its compiler asks for."""

  card: Card
  description: str
  capability: tuple[int, int]
  multiprocessors: int
  lanes: int  # float32 units of a multiprocessor
  threads: int  # of a multiprocessor, at most
  shared_memory: int  # bytes of a multiprocessor
  cache: int  # bytes of the second level
  clock: float  # GHz

  def config(self) -> str:
    """Returns the text form of XLA's GpuTargetConfigProto."""
    major, minor = self.capability
    return f"""gpu_device_info {{
  threads_per_block_limit: 1024
  threads_per_warp: 32
  shared_memory_per_block: 49152
  shared_memory_per_core: {self.shared_memory}
  threads_per_core_limit: {self.threads}
  core_count: {self.multiprocessors}
  fpus_per_core: {self.lanes}
  block_dim_limit_x: 2147483647
  block_dim_limit_y: 65535
  block_dim_limit_z: 65535
  memory_bandwidth: {int(self.card.bandwidth)}
  l2_cache_size: {self.cache}
  clock_rate_ghz: {self.clock}
  device_memory_size: {int(self.card.memory)}
  shared_memory_per_block_optin: {self.shared_memory - 1024}
  cuda_compute_capability {{ major: {major} minor: {minor} }}
  registers_per_core_limit: 65536
  registers_per_block_limit: 65536
}}
platform_name: "CUDA"
dnn_version_info {{ major: 9 minor: 12 patch: 0 }}
device_description_str: "{self.description}"
"""


TPUS = {
  'v5e': TpuChip(Card(197e12, 0.819e12, 200e9, 16e9), 2, 1),
  'v5p': TpuChip(Card(459e12, 2.765e12, 600e9, 95e9), 3, 1),
  'v6e': TpuChip(Card(918e12, 1.64e12, 448e9, 32e9), 2, 1),
}
_HOPPER = dict(
  capability=(9, 0),
  multiprocessors=132,
  lanes=128,
  threads=2048,
  shared_memory=233472,
  cache=52428800,
  clock=1.98,
)
GPUS = {
  'h100': GpuChip(
    card=Card(989e12, 3.35e12, 50e9, 80e9),
    description='NVIDIA H100 80GB HBM3',
    **_HOPPER,
  ),
  'h200': GpuChip(
    card=Card(989e12, 4.8e12, 50e9, 141e9),
    description='NVIDIA H200',
    **_HOPPER,
  ),
  'a100': GpuChip(
    card=Card(312e12, 2.04e12, 25e9, 80e9),
    description='NVIDIA A100-SXM4-80GB',
    capability=(8, 0),
    multiprocessors=108,
    lanes=64,
    threads=2048,
    shared_memory=167936,
    cache=41943040,
    clock=1.41,
  ),
  'l4': GpuChip(
    card=Card(121e12, 0.3e12, 32e9, 24e9),
    description='NVIDIA L4',
    capability=(8, 9),
    multiprocessors=58,
    lanes=128,
    threads=1536,
    shared_memory=102400,
    cache=50331648,
    clock=2.04,
  ),
  't4': GpuChip(
    card=Card(65e12, 0.32e12, 16e9, 16e9),
    description='Tesla T4',
    capability=(7, 5),
    multiprocessors=40,
    lanes=64,
    threads=1024,
    shared_memory=65536,
    cache=4194304,
    clock=1.59,
  ),
}
FORM = (
  'tpu:CHIP:XxY or tpu:v5p:XxYxZ of '
  f'{", ".join(TPUS)}, or gpu:CHIP:SLICESxHOSTSxGPUS of {", ".join(GPUS)}'
)


@dataclasses.dataclass(frozen=True)
class Target:
  """Some accelerators of one kind, as `tpu:v5e:4x4` or `gpu:h100:1x2x8`."""

  kind: str  # 'tpu' or 'gpu'
  chip: str
  shape: tuple[int, ...]

  @classmethod
  def parse(cls, text: str) -> 'Target':
    """Reads a target from its text.

    Raises: ValueError for a kind, chip or shape that there is not.
    """
    match = re.fullmatch(r'(tpu|gpu):(\w+):(\d+(?:x\d+)*)', text)
    chips = {'tpu': TPUS, 'gpu': GPUS}
    if not match or match.group(2) not in chips[match.group(1)]:
      raise ValueError(f'--target={text}: expected {FORM}')
    kind, chip, shape = match.groups()
    sizes = tuple(map(int, shape.split('x')))
    expected = TPUS[chip].dimensions if kind == 'tpu' else 3
    if len(sizes) != expected or not all(sizes):
      raise ValueError(
        f'--target={text}: the shape of {chip} has {expected} sizes of at '
        f'least 1, got {shape}'
      )
    return cls(kind, chip, sizes)

  @property
  def card(self) -> Card:
    """Peaks and memory of one device."""
    return (TPUS if self.kind == 'tpu' else GPUS)[self.chip].card

  @property
  def count(self) -> int:
    """Number of devices."""
    return math.prod(self.shape)

  @property
  def platform(self) -> Platform:
    """The platform of programs for these devices."""
    if self.kind == 'tpu':
      return Platform('tpu')
    return Platform('cuda', GPUS[self.chip].capability)

  def devices(self) -> list[Any]:
    """Returns the devices, of which a mesh can be made and nothing can be run.

    Raises: ModuleNotFoundError naming the extra, if the compiler is missing.
    """
    # jax.experimental is imported here: it loads plugins of the platforms.
    from jax.experimental import topologies

    shape = 'x'.join(map(str, self.shape))
    if self.kind == 'tpu':
      _need('libtpu', 'rl_jax[aot-tpu]')
      # No metadata server is asked, and several processes may compile.
      os.environ.setdefault('TPU_SKIP_MDS_QUERY', '1')
      os.environ.setdefault('ALLOW_MULTIPLE_LIBTPU_LOAD', '1')
      os.environ.setdefault('TPU_ACCELERATOR_TYPE', 'v5litepod-8')
      os.environ.setdefault('TPU_WORKER_HOSTNAMES', 'localhost')
      single = {'chips_per_host_bounds': [1, 1, 1]} if self.count == 1 else {}
      found = topologies.get_topology_desc(
        platform='tpu', topology_name=f'{self.chip}:{shape}', **single
      )
      return list(found.devices)
    _need('jax_cuda13_plugin', 'rl_jax[aot-gpu]')
    _name_cuda_files()
    found = topologies.get_topology_desc(
      platform='cuda',
      topology_name=self.chip,
      target_config=GPUS[self.chip].config(),
      topology=shape,
    )
    return list(found.devices)


def _need(module: str, extra: str) -> None:
  if importlib.util.find_spec(module) is None:
    raise ModuleNotFoundError(
      f'{module} is not installed: pip install "{extra}", in a '
      'separate environment (`make plan-environment`), as JAX would look for '
      'its devices at every start'
    )


def _name_cuda_files() -> None:
  """XLA finds the assembler and the libraries of device code in the wheels."""
  flag = '--xla_gpu_cuda_data_dir'
  spec = importlib.util.find_spec('nvidia')
  if spec is None or flag in os.environ.get('XLA_FLAGS', ''):
    return
  for folder in spec.submodule_search_locations or ():
    for found in sorted(pathlib.Path(folder).glob('cu*')):
      os.environ['XLA_FLAGS'] = (
        f'{os.environ.get("XLA_FLAGS", "")} {flag}={found}'.strip()
      )
      return
