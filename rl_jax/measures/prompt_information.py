"""The information of responses on their prompts; 0 if all have the same.

Source: RAGEN v2, mll-lab-nu/RAGEN docs/reference_mutual_information_metrics.md
and ragen/trainer/collapse_metrics.py. Left out: z-scores, retrieval among the
best k, and pairs from later turns of episodes.
"""

from collections.abc import Sequence
import contextlib
import dataclasses
import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from rl_jax import randomness
from rl_jax.checks import INT32, checked, ranged
from rl_jax.config import ExperimentConfig
from rl_jax.decoding.engine import EngineConfig, make_engine
from rl_jax.decoding.generate import start_trajectories
from rl_jax.decoding.sampling import SamplingConfig
from rl_jax.decoding.stop import make_stop
from rl_jax.learning.statistics import LOGP, Forward, token_statistics
from rl_jax.models import transformer
from rl_jax.runs import assembly
from rl_jax.runs.policy import Policy
from rl_jax.runtime import mesh as mesh_lib
from rl_jax.runtime import processes
from rl_jax.tasks.environments.base import Opened
from rl_jax.types import Array, Trajectories

LOOKED_AT = 16  # prompts of the split, for each different one that is wanted


def information(
  logp_RN: np.ndarray, own_R: np.ndarray, length_R: np.ndarray
) -> dict[str, float]:
  """Mutual information of prompts, each as likely, and responses; an estimate.

    I = mean_r(log p(z_r | own prompt) - log (1/N) sum_n p(z_r | x_n)) <= log N

  Small negative values are noise of the sample. The numbers per token put
  log p(z | x) / length in place of log p(z | x), so that long responses do not
  all reach the limit; they are information of no distribution. Prompts without
  a response are left out of N.
  Source: see the head of this file; there the first of several equal log-probs
  is retrieved, here each of them by its share.

  Args:
    logp_RN: log p(response r | prompt n), sums over tokens, nats. Prompts
      differ.
    own_R: the column of the prompt that response r was drawn under.
    length_R: tokens after the sums, 1 at least.

  Returns:
    In nats: information, its limit log N, entropy H(z | x) = -mean log p(z |
    own prompt), and information and entropy per token. retrieval: how often the
    own prompt has the largest log-prob; by chance 1/N.

  Raises:
    ValueError: responses to fewer than two prompts.
  """
  prompts, own_R = np.unique(own_R, return_inverse=True)
  N = len(prompts)
  if N < 2:
    raise ValueError(
      f'prompt information: there are responses to {N} prompts, it needs 2'
    )
  logp_RN = np.asarray(logp_RN, np.float64)[:, prompts]
  best_RN = logp_RN == logp_RN.max(axis=1, keepdims=True)
  found = {
    'information': _above_mixture(logp_RN, own_R).mean(),
    'information_limit': np.log(N),
    'entropy': -_own(logp_RN, own_R).mean(),
    'retrieval': (_own(best_RN, own_R) / best_RN.sum(axis=1)).mean(),
    'retrieval_by_chance': 1 / N,
  }
  logp_RN = logp_RN / np.asarray(length_R)[:, None]
  found['information_per_token'] = _above_mixture(logp_RN, own_R).mean()
  found['entropy_per_token'] = -_own(logp_RN, own_R).mean()
  return {name: float(x) for name, x in found.items()}


def _own(x_RN, own_R):
  return np.take_along_axis(x_RN, own_R[:, None], axis=1)[:, 0]


def _above_mixture(logp_RN, own_R):
  mixture_R = np.logaddexp.reduce(logp_RN, axis=1) - np.log(logp_RN.shape[1])
  return _own(logp_RN, own_R) - mixture_R


def make_scores(
  model: transformer.ModelConfig, mesh: jax.sharding.Mesh, temperature: float
):
  """Jitted (params, traj, prompt_NP, mask_NP) -> log p(row | prompt), [N, B].

  Sums over the tokens of traj.mask_BT. One prompt after the other on each
  device, so that memory is that of all rows under one prompt; their number is a
  multiple of the devices that split rows.
  """
  shards = mesh.shape['data'] * mesh.shape['fsdp']
  forward = Forward(model=model, temperature=temperature)

  @functools.partial(jax.jit, out_shardings=mesh_lib.replicated(mesh))
  def scores(
    params: Any, traj: Trajectories, prompt_NP: Array, mask_NP: Array
  ) -> Array:
    B, T = traj.response_BT.shape

    def again(x_BT):
      return jnp.tile(x_BT, (shards, 1))

    def under(prompts):
      prompt, mask = prompts
      rows = start_trajectories(
        prompt,
        mask,
        jnp.zeros(shards, jnp.int32),
        group_size=B,
        max_response_tokens=T,
      ).replace(
        response_BT=again(traj.response_BT),
        kind_BT=again(traj.kind_BT),
        mask_BT=again(traj.mask_BT),
      )
      logp_BT = token_statistics(forward, params, rows, (LOGP,))[LOGP]
      return logp_BT.sum(axis=1).reshape(shards, B)

    def by_device(x_NP):
      return x_NP.reshape(-1, shards, x_NP.shape[1])

    pieces = jax.lax.map(under, (by_device(prompt_NP), by_device(mask_NP)))
    return pieces.reshape(-1, B)

  return scores


@dataclasses.dataclass(frozen=True, kw_only=True)
@checked
class Draws:
  """The draws: num_samples responses to each of num_prompts of a split.

  until: tokens from this text on do not count, nor do responses without it:
  with '</think>' those of the reasoning do. None: all tokens do.
  batch_prompts: memory only.
  """

  num_prompts: int = ranged(16, 2, INT32)
  num_samples: int = ranged(4, 1, INT32)
  split: str = 'train'
  until: str | None = None
  batch_prompts: int = ranged(16, 1, INT32)
  seed: int = ranged(0, -(2**63), 2**63 - 1)


class PromptInformation:
  """Numbers of `information` for policies of one shape, on one task.

  Responses are drawn as in the rollouts of the run, at its temperature, but
  without transforms of logits, and scored under every prompt at the same
  temperature. Prompts with the same tokens count once. Of episodes the first
  turn counts, whose prompt ends with the first observation: later turns answer
  what this policy did before, and have no counterpart under another prompt.
  """

  def __init__(
    self,
    config: ExperimentConfig,
    model: transformer.ModelConfig,
    tokenizer: Any,
    mesh: jax.sharding.Mesh,
    draws: Draws,
  ):
    """Raises ValueError for fewer than two different prompts, or long rows."""
    self._draws, self._tokenizer = draws, tokenizer
    if draws.until is not None:
      tokens_before(tokenizer, (), draws.until)  # an error before compilation
    rollout, T = config.rollout, config.rollout.max_response_tokens
    if rollout.turns is not None:
      T = min(T, rollout.turns.max_turn_tokens)
    policy = Policy(model=model, tokenizer=tokenizer, trainable={}, frozen={})
    self._prompts = _different(config, policy, mesh, draws)
    self._num_prompts = len(self._prompts[0])
    self._shards = mesh.shape['data'] * mesh.shape['fsdp']
    self._batch = min(draws.batch_prompts, self._num_prompts)
    self._batch += -self._batch % self._shards
    self._check_sizes(model, T)
    stop = make_stop(tokenizer, tuple(rollout.stop))
    self._engine = make_engine(
      model,
      SamplingConfig.ended_by(stop, temperature=rollout.temperature),
      EngineConfig(group_size=draws.num_samples, max_response_tokens=T),
      mesh,
    )
    self._scores = make_scores(model, mesh, rollout.temperature)
    self._replicated = mesh_lib.replicated(mesh)
    key = jax.random.key(draws.seed)
    key = randomness.purpose_key(key, randomness.EVALUATION)
    self._key = processes.put(key, self._replicated)

  def _check_sizes(self, model, T):
    P, G = self._prompts[0].shape[1], self._draws.num_samples
    if P + T > model.max_positions:
      raise ValueError(
        f'prompt information: prompts of {P} tokens and responses of {T}, but '
        f'the model has {model.max_positions} positions'
      )
    # Rows of a batch follow one prompt on each device.
    count = self._shards * (P + self._batch * G * T)
    if count > INT32:
      raise ValueError(
        f'Draws.batch_prompts * num_samples = {self._batch} * {G} with '
        f'responses of {T} tokens: {count} tokens at a time, more than {INT32}'
      )

  def __call__(self, params: Any) -> dict[str, float]:
    """See `information`; also num_prompts, and num_responses that count.

    Raises: ValueError if responses to fewer than two prompts count.
    """
    starts = range(0, self._num_prompts, self._batch)
    parts = [self._scored(params, start) for start in starts]
    logp_RN, length_R = map(np.concatenate, zip(*parts, strict=True))
    own_R = np.repeat(np.arange(self._num_prompts), self._draws.num_samples)
    counts_R = length_R > 0
    found = information(logp_RN[counts_R], own_R[counts_R], length_R[counts_R])
    return {
      **found,
      'num_prompts': len(np.unique(own_R[counts_R])),
      'num_responses': int(counts_R.sum()),
    }

  def _scored(self, params, start):
    """(log-probs [R, N], lengths [R]) of responses to prompts from start on."""
    index = np.arange(start, start + self._batch)
    real = int((index < self._num_prompts).sum()) * self._draws.num_samples
    rows = self._padded(index)
    traj = self._engine.start(*rows, start, 0)
    traj = self._engine.generate(params, traj=traj, key=self._key)
    if self._draws.until is not None:
      traj = traj.replace(mask_BT=self._before(traj, self._draws.until))
    size = self._num_prompts + -self._num_prompts % self._shards
    prompts = self._padded(np.arange(size))[:2]
    logp_NB = self._scores(
      params, traj, *processes.put(prompts, self._replicated)
    )
    logp_NB, mask_BT = processes.read((logp_NB, traj.mask_BT))
    logp_NR = logp_NB[: self._num_prompts, :real]
    return logp_NR.T, mask_BT[:real].sum(axis=1)

  def _padded(self, index):
    """Arrays of these prompts, with the first one again at the end."""
    index = np.where(index < self._num_prompts, index, 0)
    return tuple(x[index] for x in self._prompts)

  def _before(self, traj, text):
    host = processes.read((traj.response_BT, traj.length_B, traj.mask_BT))
    response_BT, length_B, mask_BT = host
    before_B = [
      tokens_before(self._tokenizer, ids[:length].tolist(), text)
      for ids, length in zip(response_BT, length_B, strict=True)
    ]
    on_BT = np.arange(mask_BT.shape[1]) < np.array(before_B)[:, None]
    return processes.put(mask_BT * on_BT.astype(np.float32), self._replicated)


def tokens_before(tokenizer: Any, ids: Sequence[int], text: str) -> int:
  """Whole tokens in front of the first place of a text; 0 if it is nowhere.

  Raises: ValueError for an empty text, one that the tokenizer cannot write, or
    one of a control token and more.
  """
  if not text:
    raise ValueError('Draws.until is empty: give a text, or None')
  control = tokenizer.encode(text, control=True)
  if control != tokenizer.encode(text):  # has no bytes
    if len(control) > 1:
      raise ValueError(
        f'Draws.until = {text!r} holds a control token and more: give the '
        'control token only'
      )
    return list(ids).index(control[0]) if control[0] in ids else 0
  known = tokenizer.token_bytes
  parts = [known[i] if i < len(known) else b'' for i in ids]
  place = b''.join(parts).find(text.encode())
  return int((np.cumsum([len(x) for x in parts]) <= place).sum())


def _different(config, policy, mesh, draws):
  """(prompt_NP, mask_NP, ids_N) of the first prompts with other tokens."""
  wanted = draws.num_prompts
  with _prompt_set(config, policy, mesh, draws.split) as prompts:
    first, number = {}, 0
    while number < min(len(prompts), LOOKED_AT * wanted):
      last = min(len(prompts), number + wanted)
      examples, prompt, mask, _ = prompts.batch(range(number, last))
      for example, ids, on in zip(examples, prompt, mask, strict=True):
        if not (isinstance(example, Opened) and example.failure):
          first.setdefault(tuple(ids[on > 0]), example)
      if len(first) >= wanted:
        break
      number = last
    if len(first) < 2:
      raise ValueError(
        f'prompt information: {type(config.task).__name__} has {len(first)} '
        f'prompts in split {draws.split!r} that begin and differ, it needs 2'
      )
    return prompts.arrays(list(first.values())[:wanted])


@contextlib.contextmanager
def _prompt_set(config, policy, mesh, split):
  """The prompts; of episodes with the environments' first observations."""
  with contextlib.ExitStack() as stack:
    runner = None
    if config.rollout.turns is not None:
      settings = dataclasses.replace(config.verifier, on_device=False)
      config = dataclasses.replace(config, verifier=settings)
      runner = assembly.make_runner(config, None, policy.tokenizer, mesh)
      stack.callback(runner.close)
    yield assembly.make_prompts(config, policy, runner, split)
