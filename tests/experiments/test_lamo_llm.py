"""The row of LaMo with a language model: a tiny one stands in for SmolLM2."""

import dataclasses

from absl import flags
from absl.testing import flagsaver
import jax
import numpy as np
import pytest

from experiments.papers.control import lamo, lamo_llm, run
from experiments.papers.control.rows import ROWS
from rl_jax.models import presets, spec, transformer
from rl_jax.models.files import hf_export, model_dir
from rl_jax.models.tokenizer import ByteTokenizer

CONFIG = presets.small(
  vocab_size=258,
  num_layers=1,
  width=16,
  num_heads=1,
  num_kv_heads=1,
  head_size=16,
  mlp_size=32,
)


def saved(tmp_path, **fields):
  """A directory as Hugging Face has it, or ours, of random weights."""
  config = dataclasses.replace(CONFIG, **fields)
  params = spec.init(transformer.specs(config), jax.random.key(7))
  out = str(tmp_path / 'model')
  if config.value_head or config.lora_rank:
    model_dir.save_model(out, config, params, ByteTokenizer())
  else:
    hf_export.export_hf(out, config, params, ByteTokenizer())
  return out, params


def test_the_files_are_the_frozen_body(tmp_path):
  """E0, with adapters of attention's inputs of rank 16."""
  path, params = saved(tmp_path)
  model, body, tokenizer = lamo_llm.loaded(path)
  jax.tree.map(np.testing.assert_array_equal, body, params['model'])
  assert (model.lora_rank, model.lora_alpha) == (16, 32.0)
  assert model.lora_targets == ('wq', 'wk', 'wv')
  token_MX = lamo_llm.texts(tokenizer)
  assert token_MX.shape[1] == lamo_llm.TOKENS
  assert tokenizer.decode(token_MX[0].tolist()).startswith('The "assert" stat')


def test_a_tiny_model_has_every_metric_of_the_claims(tmp_path, monkeypatch):
  """One update of each arm; equal starts of the tests for all arms."""
  monkeypatch.setattr(lamo_llm, 'STARTS', 2)
  path, _ = saved(tmp_path)
  key_S = jax.random.split(jax.random.key(0), 1)
  row = ROWS['lamo_llm']
  found = row.results(key_S, 1e-3, path)
  line = run.line('lamo_llm', row, found, {'seeds': 1})
  assert set(line['verdicts']) == {claim.text for claim in row.claims}
  for claim in row.claims:
    for arm in (claim.low, claim.high):
      score = np.asarray(found[claim.metric][arm])
      assert score.shape == (2,)
      assert ((score >= 0) & (score <= 40)).all()


@pytest.mark.parametrize(
  'fields, message',
  [
    ({'value_head': True}, 'value_head = True'),
    ({'lora_rank': 2}, 'lora_rank = 2'),
    ({'max_positions': 16}, r'16 tokens \(max_positions\).* needs 33'),
  ],
)
def test_other_models_are_refused(tmp_path, fields, message):
  path, _ = saved(tmp_path, **fields)
  with pytest.raises(ValueError, match=f'--model={path}.*{message}'):
    lamo_llm.loaded(path)


def test_what_is_no_model_is_refused(tmp_path):
  """A missing path, an empty directory, weights that do not fit."""
  for path in (tmp_path / 'none', tmp_path):
    with pytest.raises(ValueError, match=f'--model={path}: .*is not a model'):
      lamo_llm.loaded(str(path))
  path, _ = saved(tmp_path)
  (tmp_path / 'model' / 'model.safetensors').unlink()
  with pytest.raises(ValueError, match=f'--model={path}: '):
    lamo_llm.loaded(path)


@pytest.mark.parametrize(
  'texts, message',
  [
    ({'row': 'lamo_llm'}, '--model=None: the row needs'),
    ({'row': 'dpt', 'model': 'x'}, '--model=x: the row reads no'),
    (
      {'row': 'lamo_llm', 'model': 'x', 'seeds': '2'},
      '--seeds=2: the row is of',
    ),
  ],
)
def test_flags_are_checked_before_anything_is_computed(texts, message):
  with flagsaver.flagsaver():
    flags.FLAGS.mark_as_parsed()
    with flagsaver.as_parsed(**texts):
      with pytest.raises(ValueError, match=message):
        run.main(['run'])


def test_the_budget_is_stated():
  """The page names these numbers."""
  assert (lamo_llm.UPDATES, lamo_llm.BATCH, lamo_llm.STARTS) == (150, 4, 16)
  assert (lamo.WINDOW, lamo_llm.SHARES) == (8, (0.1,))
