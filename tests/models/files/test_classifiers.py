"""Scores agree with sequence classifiers of `transformers` (float32, 1e-4)."""

import dataclasses
import importlib.util
import json
import pathlib
import shutil
import string

import jax
import numpy as np
import pytest

from rl_jax.data.recorded import recorded_rows
from rl_jax.learning.final_values import closed, final_values
from rl_jax.learning.statistics import Forward
from rl_jax.models import spec
from rl_jax.models.files import (
  directories,
  hf_classifier,
  hf_export,
  hf_import,
)
from rl_jax.models.tokenizer import CharTokenizer
from rl_jax.models.transformer import specs
from rl_jax.tasks.base import RecordedResponse

GOLDEN = pathlib.Path(__file__).parents[2] / 'golden' / 'classifiers'
LIVE = 'the optional package transformers (with torch) checks this live'
TOKENIZER = CharTokenizer(string.ascii_letters[:46])
SCORE = jax.jit(final_values, static_argnums=0)
FAMILIES = ('llama', 'qwen2', 'qwen3', 'mistral', 'gemma2', 'gemma3')


def our_scores(cfg, params, ids, *, prompt_tokens=5, pads=0):
  """Scores of rows padded with 0, of which `pads` count as written."""
  n = len(ids)
  prompt = np.pad(ids[:, :prompt_tokens], ((0, 0), (2, 0)))
  mask = (np.arange(prompt.shape[1]) >= 2) * np.ones((n, 1), np.float32)
  records = []
  for row in ids:
    length = min((row != 0).sum() + pads, len(row))
    written = [int(i) for i in row[prompt_tokens:length]]
    records.append([(RecordedResponse(), written, True)])
  arrays = (prompt, mask, np.arange(n, dtype=np.int32))
  traj = recorded_rows(arrays, records, ids.shape[1])
  return SCORE(Forward(model=cfg), params, jax.device_put(traj))


@pytest.mark.parametrize('family', FAMILIES)
def test_golden_scores(family):
  """Also where the policy wrote the pad token, which is never scored."""
  cfg, params = hf_import.import_weights(GOLDEN / family)
  assert cfg.value_head and cfg.unscored_id == 0
  golden = np.load(GOLDEN / family / 'golden.npz')

  def close(found):
    return np.testing.assert_allclose(
      found, golden['scores'], rtol=0, atol=1e-4
    )

  close(our_scores(cfg, params, golden['ids']))
  if family == 'llama':
    close(our_scores(cfg, params, golden['ids'], pads=1))
    # The shortest row has 9 tokens: after the prompt if all the rest is pads.
    only = our_scores(cfg, params, golden['ids'], prompt_tokens=9, pads=1)
    close(np.where(np.arange(3) == 2, only, golden['scores']))
    plain = dataclasses.replace(cfg, unscored_id=None)
    other = our_scores(plain, params, golden['ids'], pads=1)
    assert (np.abs(other - golden['scores'])[1:] > 1e-3).all()


def test_a_classifier_does_not_write(tmp_path):
  """The check that evaluate and partners make of a path before they load it."""
  with pytest.raises(ValueError, match=r'LlamaForSequenceC.*evaluate_reward'):
    hf_classifier.check_writes(str(GOLDEN / 'llama'))
  for config in ({'architectures': ['LlamaForCausalLM']}, {}):
    (tmp_path / 'config.json').write_text(json.dumps(config))
    hf_classifier.check_writes(str(tmp_path))
  hf_classifier.check_writes(str(tmp_path / 'model.gguf'))


def test_the_token_behind_the_end_of_a_chat_is_scored():
  """The score is that of `transformers` for ChatML, whose template adds a
  newline.
  """
  cfg, params = hf_import.import_weights(GOLDEN / 'llama')
  golden = np.load(GOLDEN / 'llama' / 'golden.npz')
  row = np.argmax((golden['ids'] != 0).sum(axis=1))  # the longest
  *written, end, newline = (int(i) for i in golden['ids'][row] if i)
  arrays = (np.int32([written[:5]]), np.ones((1, 5), np.float32), np.int32([0]))
  record = [[(RecordedResponse(), [*written[5:], end], True)]]
  traj = recorded_rows(arrays, record, len(written) - 4)

  def score(rows):
    return SCORE(Forward(model=cfg), params, jax.device_put(rows))

  found = score(closed(traj, (newline,), (end,)))
  np.testing.assert_allclose(found, golden['scores'][[row]], atol=1e-4)
  assert closed(traj, (), (end,)) is traj
  cut = closed(traj, (newline,), (end + 1,))  # a row that did not end
  np.testing.assert_array_equal(cut.length_B, traj.length_B)
  np.testing.assert_array_equal(cut.response_BT[:, :-1], traj.response_BT)
  np.testing.assert_array_equal(cut.mask_BT[:, :-1], traj.mask_BT)
  assert not cut.mask_BT[:, -1].any()


def test_what_is_no_reward_model_is_named(tmp_path):
  """Several labels; a file without a head; a head of another kind."""
  folder = tmp_path / 'llama'
  shutil.copytree(GOLDEN / 'llama', folder)
  config = json.loads((folder / 'config.json').read_text())
  path = folder / 'model.safetensors'
  tensors = {
    name: np.asarray(x.read(slice(None)))
    for name, x in hf_import.open_safetensors(str(folder)).items()
  }
  head = tensors.pop('score.weight')
  for more, message in (
    ({'score.weight': np.repeat(head, 3, 0)}, r'shape \(3, 16\).*one label'),
    ({'score.0.weight': head}, r'shape None, and a reward model has \(1, 16\)'),
    ({'score.weight': head, 'score.bias': head[0]}, 'score.bias .* no place'),
  ):
    directories.save_tensors(str(folder), path.name, {**tensors, **more})
    with pytest.raises(ValueError, match=message):
      hf_import.import_weights(str(folder))
  config['architectures'] = ['BertForSequenceClassification']
  (folder / 'config.json').write_text(json.dumps(config))
  with pytest.raises(ValueError, match='none of .*Qwen2ForSequenceClass'):
    hf_import.import_weights(str(folder))


def random_classifier(family):
  """(cfg, params) with a value in every leaf."""
  cfg, _ = hf_import.import_weights(GOLDEN / family)
  cfg = dataclasses.replace(cfg, unscored_id=None)
  params = spec.init(specs(cfg), jax.random.key(0))
  params = jax.tree.map(lambda x: x + 0.1, params)
  params['value_head'] = {
    'w': jax.random.normal(jax.random.key(1), (cfg.width,)),
    'b': np.zeros((), np.float32),
  }
  return cfg, params


def test_files_come_back(tmp_path):
  """E0; an end token that pads would not be scored, so it is refused."""
  cfg, params = random_classifier('qwen3')
  out = str(tmp_path / 'out')
  hf_export.export_hf(out, cfg, params, TOKENIZER, classifier=True)
  found, restored, _ = hf_import.import_hf(out)
  assert found == dataclasses.replace(cfg, unscored_id=0)
  jax.tree.map(np.testing.assert_array_equal, params, restored)
  config = hf_export.config_to_hf(cfg, 'float32') | {'pad_token_id': 1}
  with pytest.raises(ValueError, match='token 1 pads and ends responses'):
    hf_classifier.config_of(config, cfg, (1,))
  hf_classifier.config_of(config, dataclasses.replace(cfg, unscored_id=1), (1,))
  params.pop('value_head')
  with pytest.raises(ValueError, match='without value head'):
    hf_export.export_hf(out, cfg, params, TOKENIZER, classifier=True)


def test_a_head_with_several_outputs_is_no_classifier(tmp_path):
  cfg, params = random_classifier('qwen3')
  cfg = dataclasses.replace(cfg, num_values=2)
  out = str(tmp_path / 'out')
  with pytest.raises(ValueError, match='model.num_values = 2 outputs'):
    hf_export.export_hf(out, cfg, params, TOKENIZER, classifier=True)


@pytest.mark.filterwarnings('ignore')  # of torch and transformers
@pytest.mark.parametrize('family', FAMILIES)
def test_live(family, tmp_path):
  """Fresh classifiers of the installed transformers, read and written."""
  pytest.importorskip('transformers', reason=LIVE)
  pytest.importorskip('torch', reason=LIVE)
  path = GOLDEN.parent / 'make_parity.py'
  source = importlib.util.spec_from_file_location('make_parity', path)
  parity = importlib.util.module_from_spec(source)
  source.loader.exec_module(parity)
  theirs = str(tmp_path / 'theirs')
  parity.make_classifier(family, seed=1).save_pretrained(theirs)
  ids = parity.padded_ids(1, 20, 6, 24)
  expected = parity.scores_of(theirs, ids)
  cfg, params = hf_import.import_weights(theirs)
  np.testing.assert_allclose(our_scores(cfg, params, ids), expected, atol=1e-4)
  cfg, params = random_classifier(family)
  out = str(tmp_path / 'out')
  hf_export.export_hf(out, cfg, params, TOKENIZER, classifier=True)
  np.testing.assert_allclose(
    our_scores(cfg, params, ids), parity.scores_of(out, ids), atol=1e-4
  )
