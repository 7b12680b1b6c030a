"""Qwen2ForProcessRewardModel: a head of two layers and two labels."""

import json

import jax
import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from experiments import evaluate_reward
from rl_jax.data.recorded import recorded_rows
from rl_jax.learning.final_values import label_values, token_values
from rl_jax.learning.statistics import Forward, states_around
from rl_jax.models import heads, spec
from rl_jax.models.files import hf_classifier, hf_export, hf_import
from rl_jax.models.tokenizer import ByteTokenizer
from rl_jax.models.transformer import ModelConfig, specs
from rl_jax.tasks.base import RecordedResponse

OWN = ByteTokenizer()
CFG = ModelConfig(
  vocab_size=OWN.vocab_size,
  num_layers=1,
  width=8,
  num_heads=2,
  num_kv_heads=1,
  head_size=4,
  mlp_size=8,
  qkv_bias=True,
)


def random_params(cfg):
  rng = np.random.default_rng(0)
  return jax.tree.map(
    lambda x: jax.device_put(rng.normal(size=x.shape).astype(x.dtype)),
    spec.abstract(specs(cfg)),
  )


def rows(texts):
  """Trajectories of (prompt, response)."""
  arrays = (
    np.array([[ord(x) for x in prompt] for prompt, _ in texts], np.int32),
    np.ones((len(texts), len(texts[0][0])), np.float32),
    np.arange(len(texts), dtype=np.int32),
  )
  records = [
    [(RecordedResponse(), [ord(x) for x in text], [True] * len(text))]
    for _, text in texts
  ]
  return jax.device_put(recorded_rows(arrays, records, 6))


def write(folder, **shapes):
  """A model of the family as released: no logits, a head of two labels."""
  hf_export.export_hf(str(folder), CFG, random_params(CFG), OWN)
  path = folder / 'config.json'
  config = json.loads(path.read_text())
  config['architectures'] = ['Qwen2ForProcessRewardModel']
  path.write_text(json.dumps(config))
  (file,) = folder.glob('*.safetensors')
  tensors = {k: v for k, v in load_file(file).items() if k != 'lm_head.weight'}
  rng = np.random.default_rng(1)
  sizes = {
    'score.0.weight': (8, 8),
    'score.0.bias': (8,),
    'score.2.weight': (2, 8),
    'score.2.bias': (2,),
  } | shapes
  head = {k: rng.normal(size=x).astype(np.float32) for k, x in sizes.items()}
  save_file(tensors | head, file)
  return head


def test_scores_are_those_of_the_second_label(tmp_path):
  """E1: softmax(W2 max(0, W1 h + b1) + b2)[1], written out here."""
  head = write(tmp_path)
  cfg, params = hf_import.import_weights(str(tmp_path))
  assert (cfg.value_head, cfg.value_layers, cfg.unscored_id) == (True, 2, None)
  traj = rows([('ab', 'cdef'), ('xy', 'zu')])
  forward = Forward(model=cfg)
  _, hidden = jax.jit(states_around, static_argnums=0)(forward, params, traj)
  hidden = np.asarray(hidden, np.float64)
  w1, b1, w2, b2 = (np.asarray(x, np.float64) for x in head.values())
  two = np.maximum(hidden @ w1.T + b1, 0) @ w2.T + b2
  expected = np.exp(two[..., 1]) / np.exp(two).sum(-1)
  value = jax.jit(token_values, static_argnums=0)(forward, params, traj)
  mask = np.asarray(traj.mask_BT) > 0
  found = 1 / (1 + np.exp(-np.asarray(value)))
  np.testing.assert_allclose(found[mask], expected[mask], rtol=1e-5)
  assert np.ptp(found[mask]) > 0.01


def test_another_head_is_refused(tmp_path):
  """Three labels, or a head of one layer."""
  write(tmp_path, **{'score.2.weight': (3, 8)})
  with pytest.raises(ValueError, match=r"'score.2.weight': \(3, 8\)"):
    hf_import.import_weights(str(tmp_path))


def test_it_does_not_write(tmp_path):
  write(tmp_path)
  with pytest.raises(ValueError, match='Qwen2ForProcessRewardModel.*cannot wr'):
    hf_classifier.check_writes(str(tmp_path))


def test_label_values_are_differences_of_logits():
  """E1: against all logits, of a model with and without its own output."""
  for tied in (True, False):
    cfg = ModelConfig(**{**vars(CFG), 'tied_embeddings': tied})
    params = random_params(cfg)
    traj, forward = rows([('ab', 'cdef'), ('xy', 'zu')]), Forward(model=cfg)
    before, _ = states_around(forward, params, traj)
    logits = np.asarray(heads.logits(params, cfg, before))
    found = label_values(forward, (5, 9), params, traj)
    np.testing.assert_allclose(
      found, logits[..., 5] - logits[..., 9], rtol=1e-5, atol=1e-5
    )


def test_steps_end_with_a_token():
  """The places of the scores are those of the token, in the response."""
  prompt, ids, ends = evaluate_reward.marked_steps(
    OWN, 'p', ('ab', 'c'), token='#', system=None
  )
  assert prompt == OWN.encode_prompt(('p',))
  assert ids == OWN.encode('ab#c#') and ends == [2, 4]
  with pytest.raises(ValueError, match="'##' is 2 tokens"):
    evaluate_reward.marked_steps(OWN, 'p', ('a',), token='##', system=None)


def test_scores_by_labels_do_not_depend_on_the_batch():
  """E1; each step is asked for after the earlier ones were called right."""
  params = random_params(CFG)
  texts = [('a', ('xx', 'yz')), ('abc', ('w',)), ('ab', ('v',) * 3)]

  def score(texts, size):
    return evaluate_reward.label_scores(
      CFG, params, OWN, texts, ('+', '-'), size
    )

  together = score(texts, 3)
  assert [len(row) for row in together] == [2, 1, 3]
  for row, found in zip(texts, together, strict=True):
    np.testing.assert_allclose(score([row], 1)[0], found, atol=1e-5)
  np.testing.assert_allclose(
    score([('a', ('xx',))], 1)[0], together[0][:1], atol=1e-5
  )
  with pytest.raises(ValueError, match='step_labels=.: expected two'):
    evaluate_reward.label_scores(CFG, params, OWN, texts, ('+',), 1)
