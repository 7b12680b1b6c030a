"""Sequence classifiers of `transformers` with one label: reward models.

Also Qwen2ForProcessRewardModel, whose head of two layers and two labels scores
every step: softmax(a, b)[1] = sigmoid(b - a), the value that is read here.

The score of a classifier is a linear head without bias on the hidden state of
the last token that is not the pad token, whatever the attention mask says:
where a model pads with its end token, the end of a response is not read.
"""

from collections.abc import Iterable, Iterator, Mapping
import dataclasses
import os
from typing import Any

from absl import logging
import numpy as np

from rl_jax.models.files import directories
from rl_jax.models.files.placement import LeafReader
from rl_jax.models.files.tensor_table import StoredTensor
from rl_jax.models.tokenizer import HFTokenizer
from rl_jax.models.transformer import ModelConfig

HEAD = 'score.weight'
PROCESS = {'Qwen2ForProcessRewardModel': 'Qwen2ForCausalLM'}
# Its head, W2 max(0, W1 x + b1) + b2.
_LAYERS = ('score.0.weight', 'score.0.bias', 'score.2.weight', 'score.2.bias')
_CAUSAL, _CLASSIFIER = 'ForCausalLM', 'ForSequenceClassification'
# The text model only; the plain name has an encoder of images, too.
_OTHER_NAMES = {'Gemma3ForCausalLM': f'Gemma3Text{_CLASSIFIER}'}


def name_of(architecture: str) -> str:
  """The classifier on the trunk of a language model."""
  plain = architecture.removesuffix(_CAUSAL) + _CLASSIFIER
  return _OTHER_NAMES.get(architecture, plain)


def check_writes(source: str) -> None:
  """Raises ValueError if the model of that path is a classifier.

  It has no head of logits: what it would write is noise.
  """
  path = os.path.join(source, 'config.json')
  if not os.path.isfile(path):
    return
  name = str((directories.read_json(path).get('architectures') or [''])[0])
  if name.endswith(_CLASSIFIER) or name in PROCESS:
    raise ValueError(
      f'{source} is a sequence classifier ({name}): it scores responses '
      '(experiments.evaluate_reward) and cannot write any'
    )


def fields(config: Mapping[str, Any]) -> dict[str, Any]:
  """Fields of ModelConfig. A classifier has no head of logits."""
  (architecture, *_) = config['architectures']
  if architecture in PROCESS:
    return {'value_head': True, 'tied_embeddings': True, 'value_layers': 2}
  return {
    'value_head': True,
    'tied_embeddings': True,
    'unscored_id': config.get('pad_token_id'),
  }


def head_readers(
  cfg: ModelConfig, tensors: dict[str, StoredTensor], origin: str
) -> dict[str, LeafReader]:
  """Takes the head from the tensors of the files.

  Raises: ValueError without a head, or for one of several labels.
  """
  if cfg.value_layers == 2:
    return _process_readers(cfg, tensors, origin)
  head = tensors.pop(HEAD, None)
  shape = None if head is None else head.shape
  if head is None or shape != (1, cfg.width):
    raise ValueError(
      f'{origin}: {HEAD} has shape {shape}, and a reward model has '
      f'{(1, cfg.width)}: one label'
    )
  return {
    'value_head/w': LeafReader(
      lambda index: head.read(slice(0, 1))[0][index], (0,)
    ),
    'value_head/b': LeafReader(lambda index: np.zeros((), np.float32), ()),
  }


def _process_readers(cfg, tensors, origin):
  """The head of a process reward model, as one of the difference of labels."""
  D = cfg.width
  found = {name: tensors.pop(name, None) for name in _LAYERS}
  shapes = {x: None if y is None else y.shape for x, y in found.items()}
  expected = dict(zip(_LAYERS, ((D, D), (D,), (2, D), (2,)), strict=True))
  if shapes != expected:
    raise ValueError(
      f'{origin}: the head has the shapes {shapes}, and a process reward model '
      f'has {expected}'
    )
  read = {
    name: np.asarray(tensor.read(slice(0, tensor.shape[0])), np.float32)
    for name, tensor in found.items()
  }
  inner_w, inner_b, outer_w, outer_b = (read[name] for name in _LAYERS)
  leaves = {
    'inner_w': inner_w,
    'inner_b': inner_b,
    'w': outer_w[1] - outer_w[0],
    'b': outer_b[1] - outer_b[0],
  }
  return {f'value_head/{name}': _reader(leaf) for name, leaf in leaves.items()}


def _reader(leaf):
  """Reads what is in memory."""
  return LeafReader(lambda index: leaf[index], tuple(range(leaf.ndim)))


def config_of(
  config: dict[str, Any], cfg: ModelConfig, eos_ids: tuple[int, ...]
) -> dict[str, Any]:
  """config.json of the language model -> that of the classifier.

  Raises: ValueError if `transformers` would not score the end of a response.
  """
  pad = config['pad_token_id']
  if pad in eos_ids and cfg.unscored_id != pad:
    raise ValueError(
      f'token {pad} pads and ends responses: transformers would score the '
      'token before the end, which this model was not trained for. Give '
      'another with --pad_token'
    )
  return {
    **config,
    'architectures': [name_of(config['architectures'][0])],
    'id2label': {'0': 'LABEL_0'},
    'label2id': {'LABEL_0': 0},
  }


def head_tensors(
  tensors: Iterable[tuple[str, np.ndarray]], head: Mapping[str, Any], dtype: str
) -> Iterator[tuple[str, np.ndarray]]:
  """Tensors of the language model with the score in place of its logits."""
  if float(head['b']):
    logging.warning(
      'the bias of the value head has no place in the file: scores of '
      'transformers are those of the model less %g',
      float(head['b']),
    )
  yield from ((k, v) for k, v in tensors if k != 'lm_head.weight')
  yield HEAD, np.asarray(head['w'])[None].astype(dtype)


def with_pad(tokenizer: Any, token: str) -> Any:
  """The tokenizer that pads with another of its tokens."""
  if not isinstance(tokenizer, HFTokenizer):
    raise ValueError(
      f'--pad_token={token!r}: {type(tokenizer).__name__} has no other token '
      'that pads; leave the flag out'
    )
  found = tokenizer.backend.token_to_id(token)
  if found is None:
    raise ValueError(f'--pad_token={token!r} is not a token of the model')
  return dataclasses.replace(tokenizer, pad_id=found)
