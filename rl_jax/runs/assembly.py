"""Builds and checks the parts of a run from its configuration."""

from collections.abc import Mapping
import dataclasses
import functools
import math
from typing import Any

from absl import logging
from etils import epath
import jax

from rl_jax import config as config_lib
from rl_jax import serialization
from rl_jax.config import ExperimentConfig, optimizer_of
from rl_jax.decoding.engine import make_engine
from rl_jax.decoding.sampling import SamplingConfig
from rl_jax.decoding.stop import make_stop
from rl_jax.episodes.closings import ClosingJournal
from rl_jax.episodes.episode_prompts import EpisodePrompts
from rl_jax.episodes.journal import NumberedCalls
from rl_jax.episodes.slot_runner import SlotRunner
from rl_jax.episodes.turn_taking import TurnTaking
from rl_jax.judging import reward_names
from rl_jax.judging.judges import NO_JUDGES, Judges
from rl_jax.judging.verifiers import TextVerifier, TokenVerifier
from rl_jax.learning import model_checks
from rl_jax.learning.optimizers import make_optimizer
from rl_jax.learning.state import sharded_state
from rl_jax.measures import best_of
from rl_jax.measures.influence import Probe
from rl_jax.measures.option_scores import OptionScores, OptionSet
from rl_jax.method import Method, idle_pieces, uncorrected
from rl_jax.models import platform, transformer
from rl_jax.models.tokenizer import special_ids
from rl_jax.rollouts.collect import Judging
from rl_jax.rollouts.prompts import PromptSet
from rl_jax.runs import draft_model, loaded_policies
from rl_jax.runs import policy as policy_lib
from rl_jax.runs.evaluation import (
  Evaluator,
  engine_config,
  option_rows,
  protocols_of,
  sampling_of,
)
from rl_jax.runs.held_out import HeldOut
from rl_jax.runs.judges import make_judges
from rl_jax.runs.partners import make_partners
from rl_jax.runs.policies import Policies
from rl_jax.runs.policy import Policy
from rl_jax.runs.reward_models import make_rewards
from rl_jax.runs.reward_pool import make_pool
from rl_jax.runs.sources import Source, make_held_out, make_source, read_rows
from rl_jax.runs.stages import Stages, make_stages
from rl_jax.runtime import compilation, host_memory, processes
from rl_jax.runtime import mesh as mesh_lib
from rl_jax.runtime.platform import Platform
from rl_jax.runtime.writer import Writer, sole_writer
from rl_jax.tasks import votes
from rl_jax.tasks.evaluation_set import judged
from rl_jax.types import TrainState
from rl_jax.verification.former_journal import FILE as FORMER_FILE
from rl_jax.verification.journal import FOLDER
from rl_jax.verification.numbered_rewards import NumberedRewards
from rl_jax.verification.sessions import SessionPool

Runner = TextVerifier | TokenVerifier | SlotRunner


@dataclasses.dataclass(frozen=True)
class Parts:
  """The parts of a run in the loop; state and policies are at step 0."""

  mesh: jax.sharding.Mesh
  policy: Policy
  method: Method
  state: TrainState
  stages: Stages
  policies: Policies
  key: jax.Array
  runner: Runner
  collector: Source
  evaluator: Evaluator | None
  held_out: HeldOut | None
  probe: Probe | None
  judges: Judges
  # Of devices that only sample; None: there are none.
  sampling_frozen: dict[str, Any] | None

  def beside_sampler(self) -> dict[str, Any]:
    """The inputs of sampling besides the trained weights."""
    if self.sampling_frozen is None:
      return self.policies.frozen()
    return self.sampling_frozen


def assemble(
  config: ExperimentConfig,
  workdir: str,
  mesh: jax.sharding.Mesh,
  files: Mapping[str, Any] | None = None,
  writer: Writer | None = None,
) -> Parts:
  """All parts of a run on a mesh that is in force; files: fingerprints."""
  policy = policy_lib.load(config.model, config.task, config.seed, mesh)
  config = with_special_ids(config, policy.tokenizer)
  check_lengths(config, policy.model)
  _warn_of_idle_pieces(config, policy)
  warn_of_older_weights(config)
  runner = make_runner(
    config, workdir, policy.tokenizer, mesh, files, writer=writer
  )
  rows = read_rows(
    config,
    policy,
    functools.partial(make_prompts, config, policy, runner, 'train'),
  )
  state = initial_state(config, policy, mesh)
  draft = draft_model.load(config, policy.tokenizer, mesh)
  sampling_mesh = make_sampling_mesh(config)
  stages = make_stages(
    config, policy.model, policy.tokenizer, mesh, state, draft, sampling_mesh
  )
  key = run_key(config.seed, mesh)
  judges = make_judges(config, policy, mesh, key)
  evaluator = None
  if config.evaluation.every and config.evaluation.sample:
    more = {'draft': draft, 'judges': judges}
    evaluator = make_evaluator(config, policy, runner, mesh, **more)
  method = method_on_mesh(config.method, mesh)
  return Parts(
    mesh=mesh,
    policy=policy,
    method=method,
    state=state,
    stages=stages,
    policies=_policies(config, policy, mesh),
    key=key,
    runner=runner,
    collector=make_source(
      config,
      rows,
      stages,
      Judging(runner, make_rewards(config, policy.tokenizer, mesh), judges),
      key,
      policy,
    ),
    evaluator=evaluator,
    held_out=make_held_out(config, policy, stages),
    probe=_probe(config, policy, stages, method, mesh),
    judges=judges,
    sampling_frozen=None
    if sampling_mesh is None
    else processes.put(policy.frozen, mesh_lib.replicated(sampling_mesh)),
  )


def _warn_of_idle_pieces(config, policy):
  """Warns of pieces whose constants cannot act within these limits."""
  for line in idle_pieces(
    config.method,
    max_response_tokens=config.rollout.max_response_tokens,
    vocab_size=policy.model.vocab_size,
  ):
    logging.warning('%s', line)


def warn_of_older_weights(config: ExperimentConfig) -> None:
  """Warns of losses that take rows of older weights for those of the policy."""
  paths = uncorrected(config.method) if config.rollout.staleness else []
  if paths:
    logging.warning(
      'rollout.staleness = %d, but %s ha%s neither a clip nor a correction for '
      'rows of older weights: add weights.TruncatedImportance, '
      'weights.IcePop or weights.SequenceMask, or set another loss',
      config.rollout.staleness,
      ' and '.join(paths),
      's' if len(paths) == 1 else 've',
    )


def _probe(config, policy, stages, method, mesh):
  """The probe of influence in the loop, if the run asks for it."""
  if not config.diagnostics.influence_every:
    return None
  baseline = config.diagnostics.baseline or config.method
  baseline = baseline.with_special_ids(special_ids(policy.tokenizer))
  return Probe(
    config,
    stages.functions,
    method,
    method_on_mesh(baseline, mesh),
    policy.trainable,
  )


def _policies(config, policy, mesh):
  rules = config.method.policies()
  loaded = loaded_policies.read(rules, policy, mesh)
  return Policies(rules, policy.frozen, policy.trainable, loaded)


def make_prompts(
  config: ExperimentConfig,
  policy: Policy,
  runner: Runner | None,
  split: str,
  task: Any = None,
) -> PromptSet:
  """The prompts of the task or of another; runner: opens episodes."""
  rollout, kind = config.rollout, PromptSet
  if rollout.turns is not None:
    assert isinstance(runner, SlotRunner)
    kind = functools.partial(EpisodePrompts, begin=runner.open)
  return kind(
    config.task if task is None else task,
    split,
    policy.tokenizer,
    rollout.max_prompt_tokens,
    rollout.overlong_prompt,
  )


def initial_state(
  config: ExperimentConfig, policy: Policy, mesh: jax.sharding.Mesh
) -> TrainState:
  """The state of a run at step 0, on the mesh."""
  return sharded_state(
    config.method,
    make_optimizer(optimizer_of(config)),
    policy.trainable,
    config.task.num_prompts('train') * config.task.traits.players,
    mesh,
  )


def with_special_ids(
  config: ExperimentConfig, tokenizer: Any
) -> ExperimentConfig:
  """The configuration whose method knows the tokenizer's special tokens."""
  method = config.method.with_special_ids(special_ids(tokenizer))
  return dataclasses.replace(config, method=method)


def check_lengths(config: ExperimentConfig, model: transformer.ModelConfig):
  """Raises ValueError if a row could outgrow the positions of the model."""
  prompt = config.rollout.max_prompt_tokens
  limits = {'rollout': config.rollout.max_response_tokens}
  if config.evaluation.every:
    limits['evaluation'] = config_lib.most_evaluated_tokens(config)
  wrong = [
    f'rollout.max_prompt_tokens + {section}.max_response_tokens = '
    f'{prompt + tokens}'
    for section, tokens in limits.items()
    if prompt + tokens > model.max_positions
  ]
  if wrong:
    raise ValueError(
      f'{" and ".join(wrong)}, but the model has {model.max_positions} '
      'positions'
    )


def run_key(seed: int, mesh: jax.sharding.Mesh) -> jax.Array:
  """The key of a run, replicated: all its randomness derives from it."""
  return processes.put(jax.random.key(seed), mesh_lib.replicated(mesh))


def method_on_mesh(method: Method, mesh: jax.sharding.Mesh) -> Method:
  """The method with float32 leaves, replicated over the mesh."""
  return processes.put(method.as_arrays(), mesh_lib.replicated(mesh))


def with_compute_dtype(config: ExperimentConfig) -> ExperimentConfig:
  """The configuration with the dtype that 'auto' means on this platform.

  It is written to experiment.json, so that a run that continues on another
  kind of machine has the same results or is an error.
  """
  dtype, _ = platform.choose_dtype(
    config.model.compute_dtype, Platform.of_process()
  )
  return dataclasses.replace(
    config, model=dataclasses.replace(config.model, compute_dtype=dtype)
  )


def prepare(config: ExperimentConfig) -> jax.sharding.Mesh:
  """All checks that need neither weights nor files; returns the mesh."""
  config_lib.validate(config)
  host_memory.give_back_after_compilations()
  return make_mesh(config)


def make_mesh(config: ExperimentConfig) -> jax.sharding.Mesh:
  """The mesh of a run on all devices, or on those that share its batch evenly.

  From here on programs that are compiled are logged and, on accelerators, kept.

  Raises:
    ValueError: the axes do not fit the devices, or some of several hosts would
      have nothing to do.
  """
  compilation.log_programs()
  compilation.keep_programs(Platform.of_process())
  devices, apart = jax.devices(), config.mesh.rollout_devices
  mesh = config_lib.on_devices(config, len(devices)).mesh
  if apart and (processes.count() > 1 or apart >= len(devices)):
    raise ValueError(
      f'mesh.rollout_devices = {apart} of {len(devices)} devices of '
      f'{processes.count()} processes: expected fewer than all of one process'
    )
  devices = devices[: len(devices) - apart]
  used = math.prod(mesh.sizes().values())
  if config.mesh.data is None and used < len(devices):
    text = (
      f'mesh.data = {mesh.data} uses {used} of {len(devices)} devices: more do '
      'not divide the microbatch (rollout.num_prompts, '
      'update.microbatch_prompts) or rollout.slots'
    )
    if processes.count() > 1:
      raise ValueError(text)
    logging.warning('%s', text)
    devices = devices[:used]
  return mesh_lib.make_mesh(mesh, devices)


def make_sampling_mesh(config: ExperimentConfig) -> jax.sharding.Mesh | None:
  """The mesh of devices that sample, with all weights; None: the run's."""
  count = config.mesh.rollout_devices
  if not count:
    return None
  cfg = mesh_lib.MeshConfig(data=count)
  return mesh_lib.make_mesh(cfg, jax.devices()[-count:])


def make_runner(
  config: ExperimentConfig,
  workdir: str | None,
  tokenizer: Any,
  mesh: jax.sharding.Mesh,
  files: Mapping[str, Any] | None = None,
  split: str | None = 'train',
  writer: Writer | None = None,
) -> Runner:
  """Judges responses; only outcomes of workers may differ between runs.

  workdir: where they are journaled, or None: nothing will be repeated.
  files: fingerprints; outcomes of other code or data are not used again.
  split: whose first prompt shows the components of rewards.
  writer: the right to write in workdir, by default not shared with anyone.
  """
  settings = config.verifier
  if settings.on_device:
    reward_names.check_on_device(
      config.task, tokenizer, config.rollout.max_response_tokens
    )
    return TokenVerifier(config.task, tokenizer, mesh)
  config = _with_votes(config)
  task = judged(config.task, config.evaluation.sets)
  pool = make_pool(config, task, split)
  what, writer = '', writer or sole_writer()
  closings = ClosingJournal(workdir and epath.Path(workdir) / FOLDER, writer)
  if not settings.workers:
    workdir = None  # no time limit: calls can be repeated
  elif workdir is not None:
    what = _judging(config, files or {})
  journal = _journal(settings, pool, workdir, what, writer)
  if config.rollout.turns is None:
    return TextVerifier(journal)
  assert isinstance(journal, NumberedCalls)
  turns = TurnTaking(
    task,
    tokenizer=tokenizer,
    stop=_stop_of(config, tokenizer),
    turns=config.rollout.turns,
    settings=settings,
  )
  return SlotRunner(
    turns,
    journal,
    partners=make_partners(config, mesh, run_key(config.seed, mesh)),
    judged=bool(config.judges),
    closings=closings,
    host_tokens=config.rollout.host_cache_tokens or 0,
  )


def _journal(settings, pool, workdir, what, writer) -> Any:
  """The calls of a pool with their journal; workdir None: it has none."""
  number, former = processes.index(), FORMER_FILE
  if processes.count() > 1:  # each verifies its own rows
    former = f'process_{number}_{FORMER_FILE}'
  kind = NumberedCalls if isinstance(pool, SessionPool) else NumberedRewards
  return kind(
    pool,
    workdir,
    what,
    writer,
    process=number,
    former=former,
    every_line=settings.journal_sync == 'line',
  )


def _with_votes(config):
  """The configuration with tasks that name the answers for votes."""
  settings = config.evaluation
  wanted = {
    'borda_power': settings.borda_power if _draws(config) else None,
    'consensus': settings.consensus or None,
  }
  used = [f'evaluation.{k} = {v!r}' for k, v in wanted.items() if v is not None]
  if not used:
    return config
  count = functools.partial(votes.counted, setting=used[0])
  settings = dataclasses.replace(
    settings, sets=tuple(map(count, settings.sets))
  )
  return dataclasses.replace(
    config, task=count(config.task), evaluation=settings
  )


def _judging(config, files):
  """A digest of the code and the data by which responses are judged."""
  tasks = [config.task, *(one.task for one in config.evaluation.sets)]
  data = {k: x['sha256'] for k, x in files.items() if k.startswith('task')}
  return serialization.digest([*tasks, data])


def make_evaluator(
  config: ExperimentConfig,
  policy: Policy,
  runner: Runner,
  mesh: jax.sharding.Mesh,
  *,
  seed: int = 0,
  draft: draft_model.Loaded | None = None,
  judges: Judges = NO_JUDGES,
) -> Evaluator:
  """The evaluation that `config.evaluation` describes; seed: of its draws.

  draft: the model of rollout.speculative; None: it is read if there is one.

  Raises: ValueError if a batch has too many tokens, or for beam search of
    episodes.
  """
  config_lib.check_tokens(config)
  settings = config.evaluation
  model_checks.check_action_values(
    sampling_of(config).transforms, Method(), policy.model
  )
  if settings.beams is not None and config.rollout.turns is not None:
    raise ValueError(
      f'evaluation.beams = {settings.beams} with rollout.turns: beam '
      'search is of responses of one turn'
    )
  draft = draft or draft_model.load(config, policy.tokenizer, mesh)

  def engine(
    sampling: SamplingConfig, group_size: int, beams: int | None, tokens: int
  ):
    limits = engine_config(config.rollout, group_size, beams, tokens)
    return make_engine(policy.model, sampling, limits, mesh, draft)

  evaluator = Evaluator(
    engine,
    _evaluated_prompts(config, policy, runner, mesh),
    runner,
    protocols_of(config),
    settings,
    stop=_stop_of(config, policy.tokenizer),
    judges=judges,
    seed=seed,
  )
  power = settings.borda_power
  if power is not None and _draws(config):
    certainty = best_of.make_certainty(policy.model, mesh)
    evaluator.votes = (certainty, power)
  return evaluator


def _stop_of(config, tokenizer):
  """The ends of responses, and whether their readers see them."""
  return make_stop(tokenizer, config.rollout.stop, config.rollout.show_stop)


def _draws(config):
  """Returns whether a set of the evaluation has samples."""
  return any(one.num_samples for one in config.evaluation.by_name().values())


def _evaluated_prompts(
  config, policy, runner, mesh
) -> dict[str, PromptSet | OptionScores]:
  """The sets of an evaluation by name; '' the split of the run's task."""
  tasks = {one.name: one for one in config.evaluation.sets if one.task}
  prompts: dict[str, PromptSet | OptionScores] = {}
  for name, one in config_lib.evaluations(config).items():
    task, split = tasks.get(name, config.task), one.evaluation.split
    assert split is not None  # only that of a run without one
    if one.evaluation.options:
      prompts[name] = _option_scores(one, policy, mesh, split, task)
    else:
      prompts[name] = make_prompts(config, policy, runner, split, task)
  return prompts


def _option_scores(config, policy, mesh, split, task) -> OptionScores:
  """Scores of a set of options; microbatches have the rows of a score pass."""
  rollout, settings = config.rollout, config.evaluation
  prompts = OptionSet(
    task,
    split,
    policy.tokenizer,
    rollout.max_prompt_tokens,
    rollout.overlong_prompt,
    max_option_tokens=config_lib.evaluated_tokens(config),
  )
  count = min(settings.batch_prompts, settings.num_prompts, len(prompts))
  rows = option_rows(config)
  return OptionScores(prompts, policy.model, mesh, count, rows)
