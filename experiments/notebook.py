"""The functions that the notebooks of docs/notebooks call.

In a notebook:
  model = notebook.fetch_model('Qwen/Qwen2.5-0.5B-Instruct')
  data = notebook.fetch_data({'train': URL, 'test': URL})
  config = notebook.config(model, data)
  row = rl_jax.train(config, 'runs/notebook')
  notebook.curve('runs/notebook')
"""

from collections.abc import Mapping, Sequence
import dataclasses
import os
import pathlib
from typing import Any
import urllib.request

from experiments import plot
from experiments.flags import configuration
from rl_jax.config import ExperimentConfig
from rl_jax.records.metrics import ROLLOUTS, read_jsonl

CONFIG = 'configs/qwen2p5_0p5b_notebook.py'
# What a model directory needs, without weights in other forms.
FILES = ('*.json', '*.safetensors', 'merges.txt', '*.jinja')
CURVES = ('reward/mean', 'evaluation/pass_at_1', 'rollout/length')


def fetch_model(name: str, folder: str = 'models') -> str:
  """Returns the directory of a model, which is downloaded if it is not one.

  Args:
    name: a directory, or a model on huggingface.co.
    folder: where models are kept.
  """
  if os.path.isdir(name):
    return name
  # Only notebooks download: the machines that lend them have this package.
  from huggingface_hub import snapshot_download

  out = pathlib.Path(folder) / name.rsplit('/', maxsplit=1)[-1]
  return snapshot_download(name, local_dir=out, allow_patterns=list(FILES))


def fetch_data(sources: Mapping[str, str], folder: str = 'data') -> dict:
  """Returns the file of each split; what is an address is downloaded."""
  found = {}
  for split, source in sources.items():
    if not source.startswith(('http://', 'https://', 'file://')):
      found[split] = source
      continue
    path = pathlib.Path(folder) / f'{split}.jsonl'
    if not path.exists():
      path.parent.mkdir(parents=True, exist_ok=True)
      partial = path.with_suffix('.part')
      urllib.request.urlretrieve(source, partial)
      partial.rename(path)
    found[split] = str(path)
  return found


def config(
  model: str,
  data: Mapping[str, str],
  *,
  method: str = 'grpo',
  sets: Sequence[str] = (),
) -> ExperimentConfig:
  """The configuration of the notebooks with this model and these files.

  Args:
    model: directory of the model.
    data: file of each split.
    method: one of configs/methods.
    sets: changes as `--set` takes them, PATH=LITERAL.
  """
  own = [f'model.path={model!r}', f'task.sources={dict(data)!r}']
  return configuration.build(CONFIG, method, [*own, *sets])


@dataclasses.dataclass(frozen=True)
class Picture:
  """A PNG file that a notebook shows where it is the result of a cell."""

  path: str

  def _repr_png_(self) -> bytes:
    return pathlib.Path(self.path).read_bytes()


def curve(workdir: str) -> Picture:
  """Draws reward, accuracy and length of a run, in its work directory."""
  path = f'{workdir}/curves.png'
  plot.plot_curves(plot.load_runs([workdir]), path, metrics=CURVES)
  return Picture(path)


def samples(workdir: str, count: int = 2) -> str:
  """Responses of the first and of the last iteration, with rewards."""
  rows = read_jsonl(pathlib.Path(workdir) / ROLLOUTS)
  parts = []
  for step in (rows[0]['step'], rows[-1]['step']):
    of_step = [row for row in rows if row['step'] == step]
    parts += [_sample(step, row) for row in of_step[:count]]
  return '\n\n'.join(parts)


def _sample(step: int, row: Mapping[str, Any]) -> str:
  return (
    f'--- iteration {step}, reward {row["reward"]}\n{row["prompt"]}\n'
    f'>>> {row["response"]}'
  )
