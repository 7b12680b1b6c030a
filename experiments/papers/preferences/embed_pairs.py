"""Adds to pairs how far the chosen response is from its prompt (Sem-DPO).

  python -m experiments.papers.preferences.embed_pairs --model=models/smollm2
    --data=pairs.jsonl --out=embedded.jsonl

Rows are pairs of `tasks.PreferenceRows`. Each is written as it is, as JSONL,
what JSON does not know (dates of Parquet files) as text, with semantic_distance
= 1 - cos(e(prompt), e(chosen)), from 0 to 2. e(text) is the mean of the model's
final hidden states after the tokens of the text only, the contents of a
conversation on separate lines. Your own sentence encoder may fill the
field as well. The first bad row is an error that names it.
"""

from collections.abc import Mapping
import functools
import json
import os
from typing import Any

from absl import flags
import jax
import jax.numpy as jnp
import numpy as np

from experiments.flags import configuration, outputs
from rl_jax.models import transformer
from rl_jax.pieces.ops.masking import masked_mean
from rl_jax.runs import policy as policy_lib
from rl_jax.runtime import mesh as mesh_lib
from rl_jax.runtime.mesh import MeshConfig
from rl_jax.tasks import preference_forms, rows
from rl_jax.tasks.sources import BadRowError

_MODEL = flags.DEFINE_string('model', None, 'Embeds texts.', required=True)
_DATA = flags.DEFINE_string('data', None, 'Rows with pairs.', required=True)
_OUT = flags.DEFINE_string('out', None, 'JSONL file to write.', required=True)
_MAX_TOKENS = flags.DEFINE_integer(
  'max_tokens', 256, 'Of a text; what is after them is cut.', lower_bound=1
)
MAX_ROW_BYTES = 1_000_000


def plain(text: preference_forms.Text) -> str:
  """A text as it is; of a conversation its contents on their own lines."""
  if isinstance(text, str):
    return text
  return '\n'.join(message['content'] for message in text)


def distance(prompt_D: np.ndarray, chosen_D: np.ndarray) -> float:
  """1 - cos, held in [0, 2]; 1 where an embedding is 0."""
  length = float(np.linalg.norm(prompt_D) * np.linalg.norm(chosen_D))
  cos = float(prompt_D @ chosen_D) / length if length > 0 else 0.0
  return min(max(1.0 - cos, 0.0), 2.0)


def with_distance(record: Mapping[str, Any], distance: float) -> dict[str, Any]:
  """A row that JSON can hold."""
  known = json.loads(json.dumps(record, default=str))
  return {**known, 'semantic_distance': distance}


@functools.partial(jax.jit, static_argnums=1)
def _embed(params, cfg, token_1T, mask_1T):
  """The mean state after the tokens of one text, [D]."""

  # A state predicts the token that follows, here one more after the last.
  def following(x):
    return jnp.concatenate([x[:, 1:], 0 * x[:, :1]], axis=1)

  states = transformer.forward(
    params,
    cfg,
    token_1T[:, :1],
    mask_1T[:, :1],
    following(token_1T),
    mask_1T,
  )
  return masked_mean(states.astype(jnp.float32), mask_1T[..., None], axis=1)[0]


def main(argv):
  """Reads, embeds, writes."""
  if len(argv) > 1:
    raise ValueError(f'unexpected arguments: {argv[1:]}')
  outputs.check_file('out', _OUT.value)
  if os.path.exists(_OUT.value):
    raise ValueError(f'--out={_OUT.value}: the file exists')
  mesh = mesh_lib.make_mesh(MeshConfig(fsdp=jax.device_count()))
  jax.set_mesh(mesh)
  cfg, params, tokenizer = policy_lib.load_checkpoint(_MODEL.value, mesh)
  T = _MAX_TOKENS.value

  def embed(text):
    ids = tokenizer.encode(text)[:T]
    token_1T, mask_1T = np.zeros((1, T), np.int32), np.zeros((1, T), np.float32)
    token_1T[0, : len(ids)], mask_1T[0, : len(ids)] = ids, 1.0
    return np.asarray(_embed(params, cfg, token_1T, mask_1T))

  records = rows.read_records(_DATA.value, 'train', MAX_ROW_BYTES, None)
  lines = []
  for name, number, record in records:
    if isinstance(record, BadRowError):
      raise record
    prompt, (chosen, _) = preference_forms.parse(
      record, 'pair', f'{name}{number}'
    )
    texts = plain(prompt), plain(chosen.messages or chosen.text)
    try:
      found = distance(*map(embed, texts))
    except ValueError as error:  # a character that the tokenizer lacks
      raise ValueError(f'{name}{number}: {error}') from None
    lines.append(with_distance(record, found))
  if not lines:
    raise ValueError(f'--data={_DATA.value} has no rows')
  outputs.write_rows(_OUT.value, lines)


if __name__ == '__main__':
  configuration.run(main)
