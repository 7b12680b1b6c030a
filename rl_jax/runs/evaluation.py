"""Accuracy of a policy on a split: pass@1 greedy, avg@k, pass@k, length."""

from collections.abc import Callable, Mapping
import dataclasses
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from rl_jax import randomness, serialization
from rl_jax.config import (
  EvaluationConfig,
  ExperimentConfig,
  evaluated_tokens,
  evaluations,
)
from rl_jax.decoding.drafts.settings import in_evaluations
from rl_jax.decoding.engine import Engine, EngineConfig
from rl_jax.decoding.sampling import SamplingConfig
from rl_jax.decoding.stop import Stop
from rl_jax.episodes.slot_runner import SlotRunner
from rl_jax.judging.judges import NO_JUDGES, Judges
from rl_jax.judging.verifiers import TextVerifier, TokenVerifier
from rl_jax.measures import best_of, by_problem, consensus
from rl_jax.measures.option_scores import OptionScores
from rl_jax.pieces.logits import TopK, TopP
from rl_jax.rollouts.collect import RolloutConfig
from rl_jax.rollouts.prompts import PromptSet
from rl_jax.rollouts.responses import (
  Texts,
  fetch_responses,
  own_rows,
)
from rl_jax.runtime import mesh as mesh_lib
from rl_jax.runtime import processes
from rl_jax.tasks import base
from rl_jax.tasks.evaluation_set import AVERAGE

OUTCOME = f'reward/{base.OUTCOME}'


def sampling_of(config: ExperimentConfig) -> SamplingConfig:
  """Temperature and transforms of drawn responses, see EvaluationConfig."""
  settings, transforms = config.evaluation, config.method.logits
  if (settings.top_k, settings.top_p) != (None, None):
    transforms = ()
  if settings.top_k is not None:
    transforms += (TopK(k=settings.top_k),)
  if settings.top_p is not None and settings.top_p < 1.0:
    transforms += (TopP(p=settings.top_p),)
  transforms += settings.transforms
  temperature = settings.temperature
  if temperature is None:
    temperature = config.rollout.temperature
  return SamplingConfig(temperature=temperature, transforms=transforms)


def evaluation_metrics(
  greedy: dict[str, Any] | None, samples: dict[str, Any] | None
) -> dict[str, Any]:
  """Metrics of one evaluation, of NumPy or (traced) JAX arrays alike.

  A response that the verifier failed to judge counts in reward_errors and in
  no mean of rewards: these are over the responses that were judged, pass_at_j
  over the prompts with j judged samples at least. NaN if there are none.

  Args:
    greedy: arrays [n, 1] `length`, `finished` and by `reward/NAME` the
      components and their weighted sum `reward/mean`, a response a prompt; NaN
      where a response was not judged. None if there are none, but samples.
    samples: the same [n, k] of drawn responses, `sampled`, how many of their
      tokens were drawn, and `logp`, the sum over these; None if there are none.

  Returns:
    pass_at_1 (the mean outcome), the means by `reward/NAME`, length,
    truncated_fraction and n of the greedy responses; of the samples avg_at_k,
    pass_at_j for j = 2, 4, ..., k, the means by `sample_reward/NAME`,
    sample_length, sample_truncated_fraction, and entropy: the mean of -logp of
    drawn tokens, an unbiased estimate in nats; with votes (see best_of) also
    borda_at_k, majority_at_k and certain_at_k. reward_errors of both.
  """
  metrics = {}
  if greedy is not None:
    metrics = {
      'pass_at_1': _mean(greedy[OUTCOME]),
      'length': greedy['length'].mean(),
      'truncated_fraction': 1.0 - greedy['finished'].mean(),
      'n': len(greedy[OUTCOME]),
      'reward_errors': _errors(greedy[OUTCOME]),
      **_means(greedy, ''),
    }
  if samples is None:
    return metrics
  outcome = samples[OUTCOME]
  metrics.setdefault('n', len(outcome))
  errors = metrics.get('reward_errors', 0) + _errors(outcome)
  metrics['reward_errors'] = errors
  k = outcome.shape[1]
  votes = {n: x for n, x in samples.items() if n.startswith('vote/')}
  return metrics | {
    f'avg_at_{k}': _mean(outcome),
    **{f'{n[len("vote/") :]}_at_{k}': _mean(x) for n, x in votes.items()},
    'entropy': -samples['logp'].sum() / samples['sampled'].sum(),
    'sample_length': samples['length'].mean(),
    'sample_truncated_fraction': 1.0 - samples['finished'].mean(),
    **_means(samples, 'sample_'),
    **_pass_at_powers(outcome),
  }


def _errors(reward):
  return 0 if isinstance(reward, jax.Array) else int(np.isnan(reward).sum())


def _mean(reward):
  """The mean over what was judged; device verifiers judge everything."""
  if not isinstance(reward, jax.Array):
    reward = reward[~np.isnan(reward)]
  return reward.mean() if reward.size else np.nan


def _means(arrays, prefix):
  rewards = {k: x for k, x in arrays.items() if k.startswith('reward/')}
  return {f'{prefix}{name}': _mean(x) for name, x in sorted(rewards.items())}


def _pass_at_powers(outcome_NK):
  """pass@j for j = 2, 4, ... and k; an outcome above 1/2 is right."""
  if not isinstance(outcome_NK, jax.Array):
    found = by_problem.passes(outcome_NK)
    return {
      f'pass_at_{j}': x.mean() if x.size else np.nan for j, x in found.items()
    }
  k = outcome_NK.shape[1]
  count_N, metrics = (outcome_NK > 0.5).sum(axis=1), {}
  for j in by_problem.powers(k):
    by_count = [by_problem.pass_at_k(k, c, j) for c in range(k + 1)]
    metrics[f'pass_at_{j}'] = jnp.asarray(by_count, jnp.float32)[count_N].mean()
  return metrics


@dataclasses.dataclass(frozen=True)
class Protocol:
  """The protocol by which a set is evaluated.

  sampling: temperature and transforms of samples, see `sampling_of`; greedy
  responses have the transforms. tokens: of a response at most.
  """

  settings: EvaluationConfig
  sampling: SamplingConfig
  tokens: int


# (sampling, rows of a prompt, beams or None, tokens) -> the engine.
MakeEngine = Callable[[SamplingConfig, int, int | None, int], Engine]


def protocols_of(config: ExperimentConfig) -> dict[str, Protocol]:
  """The protocol of each evaluation set, by its name."""
  return {
    name: Protocol(
      settings=one.evaluation,
      sampling=sampling_of(one),
      tokens=evaluated_tokens(one),
    )
    for name, one in evaluations(config).items()
  }


def engine_config(
  rollout: RolloutConfig, group_size: int, beams: int | None, tokens: int
) -> EngineConfig:
  """The settings of an engine whose responses are evaluated."""
  return EngineConfig(
    group_size=group_size,
    max_response_tokens=tokens,
    slots=rollout.slots,
    cache_tokens=rollout.cache_tokens,
    turns=rollout.turns,
    speculative=in_evaluations(rollout.speculative),
    beams=beams,
  )


class Call(NamedTuple):
  """The settings of a program, and the prompts of its calls.

  drawn: whether the responses are samples. beams: of a search, or None. tokens:
  of a response at most.
  """

  drawn: bool
  sampling: SamplingConfig
  group_size: int
  beams: int | None
  tokens: int
  prompts: int

  def padded(self, axes: Mapping[str, int]) -> int:
    """Prompts that the devices of a mesh, by its axes, share evenly."""
    shards = axes['data'] * axes['fsdp']
    return -(-self.prompts // shards) * shards


def calls(
  protocols: Mapping[str, Protocol], prompts: Mapping[str, int], stop: Stop
) -> tuple[dict[tuple[str, bool], Any], dict[Any, Call]]:
  """The program of each set, by its name and whether it draws; their calls.

  Sets of equal settings share a program, which is called with as many prompts
  as the largest of them needs.

  Args:
    protocols: of each set by its name.
    prompts: that each set has.
    stop: ends of responses.
  """
  keys: dict[tuple[str, bool], Any] = {}
  found: dict[Any, Call] = {}
  for name, protocol in protocols.items():
    settings, plain = protocol.settings, protocol.sampling
    plain = plain.replace(eos_ids=stop.ids, stop_SV=stop.table)
    batch = min(settings.batch_prompts, settings.num_prompts, prompts[name])
    greedy = plain.replace(greedy=True, temperature=1.0)
    wanted = (
      (False, greedy, 1, settings.beams, settings.greedy),
      (True, plain, settings.num_samples, None, settings.num_samples > 0),
    )
    for drawn, sampling, rows, beams, used in wanted:
      if not used:
        continue
      how = serialization.digest([sampling.temperature, *sampling.transforms])
      key = keys[name, drawn] = (drawn, how, rows, beams, protocol.tokens)
      first = Call(drawn, sampling, rows, beams, protocol.tokens, 0)
      known = found.get(key, first)
      found[key] = known._replace(prompts=max(known.prompts, batch))
  return keys, found


def option_rows(config: ExperimentConfig) -> int:
  """Rows of a microbatch of options at most: those of a score pass."""
  rollout, update = config.rollout, config.update
  minibatch = update.minibatch_prompts or rollout.num_prompts
  groups = update.microbatch_prompts or minibatch
  return update.microbatch_rows or groups * rollout.group_size


class _Program(NamedTuple):
  """An engine, and the prompts of its calls; sets of equal settings share it.

  drawn: whether its responses are samples.
  """

  engine: Engine
  group_size: int
  batch: int
  drawn: bool


class Evaluator:
  """Samples and verifies fixed sets of prompts; compiled once per shape.

  Metrics of a set with a name, and of a part of a mixture, have the name before
  them: NAME/pass_at_1.
  """

  def __init__(
    self,
    engine: MakeEngine,
    prompts: Mapping[str, PromptSet | OptionScores],
    runner: TextVerifier | TokenVerifier | SlotRunner,
    protocols: Mapping[str, Protocol],
    settings: EvaluationConfig,
    *,
    stop: Stop,
    judges: Judges = NO_JUDGES,
    seed: int = 0,
  ):
    """prompts, protocols: of each set by its name; '' has none. Sets of options
    have scores in place of prompts.

    settings: what is measured of all sets together. stop: ends of responses.
    judges: add their components; pairs of one greedy response are 1/2.
    """
    self._judges, self._sets = judges, prompts
    self._protocols, self._settings = protocols, settings
    self._runner, self._stop = runner, stop
    # (self-certainty of rows by (params, traj), power), for votes of samples.
    self.votes: tuple[Callable, float] | None = None
    self._programs = self._make_programs(engine)
    self._key: Any = None
    for program in self._programs.values():  # all are on one mesh
      self._key = processes.put(
        randomness.purpose_key(jax.random.key(seed), randomness.EVALUATION),
        mesh_lib.replicated(program.engine.mesh),
      )

  def _make_programs(self, make) -> dict[tuple[str, bool], _Program]:
    """Programs by set, and whether they draw; equal ones are one object."""
    counts = {name: len(prompts) for name, prompts in self._sets.items()}
    keys, found = calls(self._protocols, counts, self._stop)
    programs = {}
    for key, (drawn, sampling, rows, beams, tokens, _) in found.items():
      engine = make(sampling, rows, beams, tokens)
      batch = found[key].padded(engine.mesh.shape)
      programs[key] = _Program(engine, rows, batch, drawn)
    return {name: programs[key] for name, key in keys.items()}

  def run(self, params: Any) -> tuple[dict[str, float], dict[str, np.ndarray]]:
    """(metrics, rows of prompts by name).

    Rows: 'greedy' [n] and 'samples' [n, k] are outcomes, NaN of a response that
    was not judged; 'responses' [n] are the texts of the greedy ones, and
    'questions' [n] those that they answer, without the prompt around them. Sets
    of options have the outcome of each accuracy and what OptionScores.run says.

    With drafts the metrics have accepted_length and sample_accepted_length,
    over all sets; with programs of several kinds, over those that the first set
    with such responses has.
    """
    metrics, rows, by_set = {}, {}, {}
    judges = self._judges.of_evaluation(params)
    for name, prompts in self._sets.items():
      before = f'{name}/' * bool(name)
      found, rows_of_set, greedy = self._run_set(params, name, prompts, judges)
      by_set[name] = greedy
      metrics |= {f'{before}{key}': x for key, x in found.items()}
      rows |= {f'{before}{key}': x for key, x in rows_of_set.items()}
    if self._settings.consensus:
      greedy = [by_set[name] for name in self._settings.consensus]
      found = consensus.metrics(greedy)
      metrics |= {f'consensus/{key}': x for key, x in found.items()}
    for one in self._settings.averages:
      values = [metrics[name] for name in one.metrics]
      metrics[f'{AVERAGE}/{one.name}'] = one.of(values)
    metrics |= self._draft_metrics()
    # As Python numbers; counts stay integers.
    return {key: np.asarray(x).item() for key, x in metrics.items()}, rows

  def _draft_metrics(self):
    found = {}
    for (_, drawn), program in self._programs.items():
      read = processes.read(program.engine.drafts.metrics())
      for key, x in read.items():
        key = 'sample_' * drawn + key.removeprefix('rollout/')
        found.setdefault(key, x)
    return found

  def _run_set(self, params, name, prompts, judges):
    """(metrics, rows by name, arrays of greedy responses or None) of a set."""
    if isinstance(prompts, OptionScores):
      return *self._run_options(params, name, prompts), None
    arrays, parts, rows = {}, [], {}
    for drawn in (False, True):
      if (program := self._programs.get((name, drawn))) is not None:
        count = min(self._protocols[name].settings.num_prompts, len(prompts))
        arrays[drawn], parts = self._collect(
          params, prompts, count, program, judges
        )
        outcome = arrays[drawn][OUTCOME]
        rows['samples' if drawn else 'greedy'] = (
          outcome if drawn else outcome[:, 0]
        )
    greedy, samples = arrays.get(False), arrays.get(True)
    if greedy is not None:
      rows['responses'] = greedy['response'][:, 0]
      rows['questions'] = greedy['question'][:, 0]
    found = self._measured(greedy, samples)
    ratios = prompts.task.traits.ratios
    found |= _ratios(greedy, ratios, '') | _ratios(samples, ratios, 'sample_')
    for part in sorted(set(parts) - {None}):
      own = np.asarray([x == part for x in parts])
      of_part = self._measured(_rows_of(own, greedy), _rows_of(own, samples))
      found |= {f'{part}/{key}': x for key, x in of_part.items()}
    return found, rows, greedy

  def _run_options(self, params, name, scores):
    """(metrics, rows by name) of a set whose options are compared."""
    total = min(self._protocols[name].settings.num_prompts, len(scores))
    right, rows = scores.run(params, total)
    found: dict[str, Any] = {key: x.mean() for key, x in right.items()}
    if self._settings.intervals:
      for key, right_N in right.items():
        ends = by_problem.interval(right_N)
        found |= dict(zip((f'{key}_low', f'{key}_high'), ends, strict=True))
    return {**found, 'n': total, 'reward_errors': 0}, {**right, **rows}

  def _measured(self, greedy, samples):
    found = evaluation_metrics(greedy, samples)
    if self._settings.intervals:
      for kind in (greedy, samples):
        if kind is not None:
          found |= by_problem.intervals(kind[OUTCOME], kind is samples)
    return found

  def _collect(self, params, prompts, total, program, judges):
    """Per-prompt arrays [n, group_size], part of a mixture or None by prompt.

    total: of the first prompts. Batches have a fixed width.
    """
    engine, group_size, batch, drawn = program
    indices, names = range(total), []
    parts, judged = [], []
    for start in range(0, total, batch):
      real = list(indices[start : start + batch])
      padded = real + [real[0]] * (batch - len(real))
      examples, prompt, mask, ids = prompts.batch(padded)
      # The counter of randomness is the position in the evaluation set.
      count = len(real) * prompts.players
      traj = engine.start(prompt, mask, ids, start * prompts.players, 0)
      traj = self._runner.play(engine, params, traj, self._key, examples)
      host = fetch_responses(traj, count)
      own = own_rows(count, group_size)
      texts = Texts(host, own, self._stop)
      logp = host['logp'].sum(axis=1).tolist()
      logp = [x for part in processes.gather(logp) for x in part]
      real_examples = examples[:count]
      names += [example.meta.get(base.PART) for example in real_examples]
      outcomes = self._runner.outcomes(traj, real_examples, texts)
      said = self._runner.said(texts, own)
      outcomes = judges.add(outcomes, real_examples, said, group_size)
      judged += [outcome.components for outcome in outcomes]
      count *= group_size
      parts.append(
        {
          'length': host['length'][:count],
          'sampled': host['sampled'][:count],
          'finished': host['finished'][:count],
          'logp': np.asarray(logp, np.float32),
        }
      )
      if not drawn:
        said = [x for part in processes.gather(list(texts)) for x in part]
        parts[-1]['response'] = np.asarray(said, object)
        questions = [x.meta.get('question', x.prompt) for x in real_examples]
        parts[-1]['question'] = np.asarray(questions, object)
      if self.votes is not None and drawn:
        keys = processes.gather(best_of.keys_of(texts))
        certainty_B = processes.read(self.votes[0](params, traj))
        parts[-1] |= {
          'text': np.asarray([key for part in keys for key in part]),
          'certainty': certainty_B[:count],
        }
    arrays = {k: np.concatenate([p[k] for p in parts]) for k in parts[0]}
    weights = {**prompts.task.reward_weights, **judges.weights}
    arrays |= _rewards(judged, weights)
    shape = (len(indices) * prompts.players, group_size)
    arrays = {name: x.reshape(shape) for name, x in arrays.items()}
    if self.votes is not None and 'certainty' in arrays:
      arrays |= best_of.outcomes(arrays, self.votes[1])
    return arrays, names


def _rewards(judged, weights):
  """reward/NAME: of each response; a component that it lacks counts 0."""
  names = {base.OUTCOME, *weights, *(n for c in judged if c for n in c)}
  rows = [
    None if c is None else {**c, 'mean': base.combine(c, weights)}
    for c in judged
  ]
  return {
    f'reward/{name}': np.asarray(
      [np.nan if c is None else c.get(name, 0.0) for c in rows]
    )
    for name in (*sorted(names), 'mean')
  }


def _ratios(arrays, ratios, prefix):
  """Sums of a component by those of another, over what was judged."""
  found = {}
  for name, (above, below) in ratios.items() if arrays else ():
    above, below = (np.nansum(arrays[f'reward/{x}']) for x in (above, below))
    found[f'{prefix}reward/{name}'] = above / below if below else np.nan
  return found


def _rows_of(own, arrays):
  if arrays is None:
    return None
  return {name: x[own] for name, x in arrays.items()}
