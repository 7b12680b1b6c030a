"""A file of each of TRL's forms trains as it is."""

import dataclasses
import pathlib

import numpy as np
import pytest

from configs.worlds import preferences
from rl_jax.models.source import ModelSource
from rl_jax.overrides import override
from rl_jax.records.metrics import read_jsonl
from rl_jax.runs import loop
from rl_jax.tasks import PreferenceRows

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures('no_mesh_left')]
FOLDER = pathlib.Path(__file__).parents[1] / 'tasks' / 'preferences'
# File: (method, rows of a group); KTO's groups have one for its baseline.
FORMS = {
  'pair': ('dpo', 2),
  'implicit': ('dpo', 2),
  'conversational': ('dpo', 2),
  'implicit_conversational': ('dpo', 2),
  'label': ('kto', 2),
  'label_conversational': ('kto', 2),
  'scores': ('online_dpo', 3),
  'completion': ('sft', 1),
  'completion_conversational': ('sft', 1),
  'messages': ('sft', 1),
  'steps': ('process_reward_model', 1),
}
AT_THE_REFERENCE = {'dpo': np.log(2), 'online_dpo': np.log(2), 'kto': 0.5}


def test_every_shipped_file_is_trained():
  assert sorted(FORMS) == sorted(p.stem for p in FOLDER.glob('*.jsonl'))


@pytest.mark.parametrize('name', FORMS)
def test_a_file_trains_as_it_is(name, chat_model, toy, tmp_path):
  """All its rows in one batch; the loss is that of the untrained policy."""
  method, group_size = FORMS[name]
  config = preferences.get_config(toy.get_method(method))
  task = PreferenceRows(path=str(FOLDER / f'{name}.jsonl'))
  source = ModelSource(
    path=chat_model,
    value_head=config.method.reads_values,
    num_values=config.method.num_values,
  )
  config = dataclasses.replace(config, task=task, model=source)
  count = str(task.num_prompts('train'))
  for path, text in {
    'iterations': '2',
    'rollout.num_prompts': count,
    'rollout.recorded_prompts': count,
    'rollout.group_size': str(group_size),
    'rollout.max_prompt_tokens': '96',
    'rollout.max_response_tokens': '64',
    'evaluation.every': '0',
    'verifier.num_workers': '0',
  }.items():
    config = override(config, path, text)
  loop.Trainer(config, str(tmp_path)).run()
  first, last = read_jsonl(tmp_path / 'metrics.jsonl')
  assert first['train/loss'] > 0 and first['train/grad_norm'] > 0
  assert last['train/loss'] < first['train/loss']
  if method in AT_THE_REFERENCE:
    np.testing.assert_allclose(
      first['train/loss'], AT_THE_REFERENCE[method], rtol=1e-5
    )
