"""The notebooks of docs/notebooks run, and what they train fits."""

import dataclasses
import json
import pathlib

import pytest

from experiments import notebook
from rl_jax.planning import memory_plan
from rl_jax.planning.targets import Target
from rl_jax.runs import policy as policy_lib
from rl_jax.runtime import mesh as mesh_lib

FOLDER = pathlib.Path(__file__).parents[2] / 'docs' / 'notebooks'
PAGES = sorted(FOLDER.glob('*.ipynb'))
# In place of what is downloaded, and as few tokens as show that it runs.
QUESTIONS = [
  {'question': f'What is {n} and 1?', 'answer': f'One more: {n + 1}\n#### 3'}
  for n in range(8)
]
FEW = [
  'iterations=2',
  'model.config=null',
  'model.lora_rank=2',
  'rollout.num_prompts=2',
  'rollout.group_size=2',
  'rollout.max_prompt_tokens=192',
  'rollout.max_response_tokens=4',
  'update.microbatch_prompts=1',
  'evaluation.num_prompts=2',
  'evaluation.batch_prompts=2',
  'evaluation.every=1',
]


def code_cells(page):
  """The text of each code cell."""
  cells = json.loads(page.read_text())['cells']
  return [
    ''.join(cell['source']) for cell in cells if cell['cell_type'] == 'code'
  ]


def settings(page):
  """The names that the cell of settings defines."""
  (cell,) = (text for text in code_cells(page) if text.startswith('MODEL ='))
  found = {}
  exec(cell, found)
  return found


@pytest.mark.parametrize('page', PAGES, ids=lambda page: page.stem)
@pytest.mark.usefixtures('no_mesh_left')
def test_all_cells_run(page, chat_model, tmp_path, monkeypatch, capsys):
  """With a tiny model in place of the download, on this machine."""
  lines = '\n'.join(map(json.dumps, QUESTIONS))
  for split in ('train', 'test'):
    (tmp_path / f'{split}_rows.jsonl').write_text(lines)
  monkeypatch.chdir(tmp_path)
  replaced = {
    'MODEL': chat_model,
    'DATA': {x: f'file://{tmp_path}/{x}_rows.jsonl' for x in ('train', 'test')},
    'SETS': FEW,
  }
  found = {'__name__': '__main__'}
  for text in code_cells(page):
    exec(text, found)
    found |= {name: x for name, x in replaced.items() if name in found}
  picture = notebook.curve(found['WORKDIR'])
  assert picture._repr_png_().startswith(b'\x89PNG')
  printed = capsys.readouterr().out
  assert 'right before:' in printed and 'right after:' in printed
  assert '--- iteration 1, reward' in printed
  assert '--- iteration 2, reward' in printed
  assert (tmp_path / 'data' / 'train.jsonl').read_text() == lines


@pytest.mark.parametrize(
  ('page', 'target'),
  [
    ('colab', 'tpu:v5e:1x1'),
    ('colab', 'gpu:t4:1x1x1'),
    ('colab', 'gpu:l4:1x1x1'),
    ('kaggle', 'tpu:v5e:2x4'),
  ],
)
def test_they_fit_the_machines_that_anyone_has(page, target):
  """The plan, without weights, takes at most 0.9 of the device's memory."""
  accelerators = Target.parse(target)
  sets = settings(FOLDER / f'{page}.ipynb')['SETS']
  config = notebook.config(
    'models/none', {'train': 'x', 'test': 'y'}, sets=sets
  )
  sizes = config.mesh.sizes(accelerators.count)
  config = dataclasses.replace(config, mesh=mesh_lib.MeshConfig(**sizes))
  model = policy_lib.planned_model(
    config.model, config.task, accelerators.platform
  )
  mesh = mesh_lib.abstract_mesh(config.mesh)
  plan = memory_plan.estimate(config, model, mesh)
  assert plan.peak <= 0.9 * accelerators.card.memory


def test_a_model_that_is_a_directory_is_not_downloaded(tmp_path):
  assert notebook.fetch_model(str(tmp_path)) == str(tmp_path)
