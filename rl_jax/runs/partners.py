"""The partners of a run: read, checked, and bound to models and tokenizers."""

import functools
from typing import Any

import jax

from rl_jax.config import ExperimentConfig
from rl_jax.decoding.engine import EngineConfig, make_engine
from rl_jax.decoding.sampling import SamplingConfig
from rl_jax.decoding.stop import make_stop
from rl_jax.episodes.candidate_log_probs import LogProbs
from rl_jax.episodes.partners import NO_PARTNERS, Asked, Partners
from rl_jax.judging.judges import Reader
from rl_jax.models.files import hf_classifier
from rl_jax.models.partner_source import Partner
from rl_jax.runs import judges
from rl_jax.runs import policy as policy_lib
from rl_jax.runtime.platform import Platform


def check(config: ExperimentConfig) -> None:
  """Raises ValueError if a partner's path holds no language model."""
  for source in config.partners:
    try:
      policy_lib.check(source.path)
      hf_classifier.check_writes(source.path)
    except (ValueError, OSError) as error:
      raise ValueError(f'partner {source.name!r}: {error}') from None


def make_partners(
  config: ExperimentConfig, mesh: jax.sharding.Mesh, key: jax.Array
) -> Partners:
  """The partners of config.partners; a model with several names is loaded once.

  Raises: ValueError naming a partner whose model or lengths do not fit.
  """
  if not config.partners:
    return NO_PARTNERS
  check(config)
  load = functools.cache(lambda path: policy_lib.load_checkpoint(path, mesh))
  return Partners(
    [
      _asked(config, mesh, key, source, *load(source.path))
      for source in config.partners
    ]
  )


def _asked(config, mesh, key, source: Partner, model, params, tokenizer):
  model = judges.resolved(model, config, Platform.of_mesh(mesh))
  sizes = source.max_tokens, source.answer_tokens
  if sum(sizes) > model.max_positions:
    raise ValueError(
      f'partner {source.name!r}: max_tokens + answer_tokens = {sum(sizes)}, '
      f'but its model has {model.max_positions} positions'
    )
  stop = make_stop(tokenizer)
  engine = make_engine(
    model,
    SamplingConfig.ended_by(stop, greedy=True),
    EngineConfig(group_size=1, max_response_tokens=source.answer_tokens),
    mesh,
  )
  fixed: dict[str, Any] = {
    'model': model,
    'mesh': mesh,
    'pad_id': tokenizer.pad_id,
    'rows': judges.rows_of(config),
  }
  return Asked(
    source,
    params,
    encode=judges.EncodeText(source.chat, tokenizer),
    encode_answer=tokenizer.encode,
    # One width, so that an answer does not depend on what else is asked.
    texts=Reader(
      **fixed, engine=engine, stop=stop, key=key, width=source.max_tokens
    ),
    log_probs=LogProbs(**fixed, sizes=sizes),
    rows=fixed['rows'],
  )
