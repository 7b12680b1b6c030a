"""The stages of a configuration on shapes only: lowered without any weights.

Every array is a jax.ShapeDtypeStruct with the sharding that the real run gives
it, so the programs are those of the run; no parameter is ever allocated.
"""

from collections.abc import Mapping
import dataclasses
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from rl_jax.config import ExperimentConfig, optimizer_of
from rl_jax.data import recorded
from rl_jax.data.recorded_checks import reads_mismatched
from rl_jax.decoding.engine import make_engine
from rl_jax.decoding.generate import start_trajectories
from rl_jax.decoding.stop import make_stop
from rl_jax.episodes.turn_taking import OPPONENT
from rl_jax.learning.learned_reward import Scorer
from rl_jax.learning.optimizers import make_optimizer
from rl_jax.learning.state import state_shapes
from rl_jax.learning.statistics import Forward
from rl_jax.learning.update import Batch
from rl_jax.measures import option_scores
from rl_jax.models import params as params_lib
from rl_jax.models import transformer
from rl_jax.planning import described_rows, episode_programs
from rl_jax.runs import draft_model, evaluation, held_out, reward_models
from rl_jax.runs import stages as stages_lib
from rl_jax.runs.policies import with_policies
from rl_jax.runtime import mesh as mesh_lib
from rl_jax.tasks.base import RecordedResponse
from rl_jax.types import TrainState


def abstract(tree: Any, place: jax.sharding.Sharding) -> Any:
  """Shapes of a tree of arrays or shapes, all with one sharding."""
  return jax.tree.map(
    lambda x: jax.ShapeDtypeStruct(x.shape, x.dtype, sharding=place), tree
  )


def train_state(
  config: ExperimentConfig, trainable: Any, mesh: jax.sharding.Mesh
) -> TrainState:
  """Shapes of the state at step 0, with tables for one prompt."""
  optimizer = make_optimizer(optimizer_of(config))
  return state_shapes(config.method, optimizer, trainable, 1, mesh)


class _NoTokenizer:
  """A stand-in for a tokenizer: which ids end a response changes no program."""

  eos_ids = (0,)
  token_bytes = tuple(bytes([byte]) for byte in range(256))  # of stop texts

  def encode(self, text: str, control: bool = False) -> list[int]:
    """One token that ends a response, for every stop text."""
    del text
    return [0] if control else []

  def merged(self, text: str) -> list[int]:
    """An empty list of ids."""
    del text
    return []


def _wrapped(traj, wrapper):
  """The rows as they leave the rollout wrapper, all with one sharding."""
  rows = wrapper.shapes(traj)
  extras = abstract(rows.extras, traj.mask_BT.sharding)
  return rows.replace(extras=extras)


def _of_data(config, traj):
  """Returns what rows from data say of themselves, of the kinds of the first
  one.
  """
  task = config.task
  records = task.recorded(task.example('train', 0))
  record = records[0]
  found = recorded.extras_of(
    [record], np.ones(1, np.float32), reads_mismatched(config.method)
  )
  B, T = traj.response_BT.shape
  shapes = {name: (B, *x.shape[1:]) for name, x in found.items()}
  if record.step_labels:
    shapes['step_label_BT'] = B, T
  if recorded.beside_labels([[(one,) for one in records]]).any():
    shapes[recorded.UNLABELLED] = (B,)
  found = {n: jax.ShapeDtypeStruct(x, jnp.float32) for n, x in shapes.items()}
  return abstract(found, traj.mask_BT.sharding)


def evaluated(
  config: ExperimentConfig,
) -> dict[str, tuple[evaluation.Call, int]]:
  """The programs of an evaluation by stage, and how often each is called.

  A stage is named after the first set that has its program. Sets are taken to
  have as many prompts as are asked of them.
  """
  if not (config.evaluation.every and config.evaluation.sample):
    return {}
  rollout = config.rollout
  protocols = evaluation.protocols_of(config)
  prompts = {name: x.settings.num_prompts for name, x in protocols.items()}
  stop = make_stop(_NoTokenizer(), rollout.stop, rollout.show_stop)
  programs, calls = evaluation.calls(protocols, prompts, stop)
  found = {}
  for program, call in calls.items():
    sets = [one for one, used in programs.items() if used == program]
    name, drawn = sets[0]
    stage = ' '.join(filter(None, ('evaluate', name, 'samples' * drawn)))
    times = sum(-(-prompts[name] // call.prompts) for name, _ in sets)
    found[stage] = call, times
  return found


class OptionCall(NamedTuple):
  """A call that scores the options of questions, of which each has OPTIONS.

  tokens: of an option at most. rows: of a microbatch at most.
  """

  prompts: int
  tokens: int
  rows: int

  def padded(self, axes: Mapping[str, int]) -> int:
    """Prompts that the devices of a mesh, by its axes, share evenly."""
    return option_scores.padded(self.prompts, axes)

  def microbatches(self, axes: Mapping[str, int]) -> int:
    """The parts in which the devices score them."""
    batch = self.padded(axes)
    return option_scores.microbatches(batch, OPTIONS, self.rows, axes)


OPTIONS = 4  # as most published questions have


def scored(config: ExperimentConfig) -> dict[str, tuple[OptionCall, int]]:
  """The programs that score options by stage, and how often each is called.

  Sets are taken to have as many prompts as are asked of them, and options as
  many tokens as they may have.
  """
  found: dict[str, tuple[OptionCall, int]] = {}
  if not (config.evaluation.every and config.evaluation.sample):
    return found
  stages: dict[OptionCall, str] = {}
  for name, protocol in evaluation.protocols_of(config).items():
    settings = protocol.settings
    if not settings.options:
      continue
    batch = min(settings.batch_prompts, settings.num_prompts)
    call = OptionCall(batch, protocol.tokens, evaluation.option_rows(config))
    stage = ' '.join(filter(None, ('evaluate', name, 'options')))
    stage = stages.setdefault(call, stage)
    _, times = found.get(stage, (call, 0))
    found[stage] = call, times + -(-settings.num_prompts // batch)
  return found


def evaluation_stages(config: ExperimentConfig) -> tuple[str, ...]:
  """The names of all programs of an evaluation."""
  return *evaluated(config), *scored(config)


@dataclasses.dataclass(frozen=True)
class AbstractRun:
  """One iteration's stages and the shapes of their arguments."""

  config: ExperimentConfig
  model: transformer.ModelConfig
  mesh: jax.sharding.Mesh

  def lower(self) -> dict[str, jax.stages.Lowered]:
    """The lowered programs by stage, in the order of an iteration."""
    with jax.set_mesh(self.mesh):
      return self._lower()

  def _lower(self) -> dict[str, jax.stages.Lowered]:
    config, mesh = self.config, self.mesh
    replicated = mesh_lib.replicated(mesh)
    params = params_lib.shapes(self.model, mesh)
    trainable, frozen = params_lib.split_trainable(self.model, params)
    state = train_state(config, trainable, mesh)
    frozen = with_policies(
      frozen, dict.fromkeys(config.method.policies(), trainable)
    )
    params = {**frozen, **trainable}
    stages = stages_lib.make_stages(
      config, self.model, _NoTokenizer(), mesh, state, self._draft()
    )
    method = abstract(jax.eval_shape(config.method.as_arrays), replicated)
    key = abstract(jax.eval_shape(lambda: jax.random.key(0)), replicated)
    lowered = {}
    traj = self._empty_rows(
      config.rollout.generated_prompts,
      config.rollout.group_size,
      config.rollout.max_response_tokens,
    )
    if config.rollout.turns is None:
      lowered['generate'] = stages.engine.generate.lower(
        params, traj=traj, key=key
      )
      traj = lowered['generate'].out_info
      if config.rollout.speculative is not None:
        traj = traj[0]  # the others are memory and counts
      traj = abstract(traj, replicated)
    else:
      found = episode_programs.lowered(stages.engine, params, traj, key, config)
      lowered |= {name or 'generate': one for name, one in found.items()}
      traj = abstract(episode_programs.played(traj, config), replicated)
    if config.reward_models:
      lowered['reward'] = self._reward(traj)
    traj = _wrapped(traj, config.method.wrapper)
    if config.rollout.recorded_prompts:
      traj = traj.replace(extras={**traj.extras, **_of_data(config, traj)})
    if hasattr(stages.score, 'lower'):
      lowered['score'] = stages.score.lower(params, traj, method)
      traj = abstract(lowered['score'].out_info[0], replicated)
    lowered['make_batch'] = described_rows.lowered(
      lambda traj: stages.make_batch.lower(method, traj, state.method_state),
      described_rows.with_rewards(config, traj),
      config.method.num_values,
    )
    traj = abstract(lowered['make_batch'].out_info[0], replicated)
    batch = Batch(frozen=frozen, method=method, traj=traj, key=key)
    lowered['update'] = self._update(stages, state, batch)
    lowered |= self._held_out(stages, state, frozen, method, key)
    return lowered | self._evaluations(params, key)

  def _held_out(
    self, stages: Any, state: Any, frozen: Any, method: Any, key: Any
  ) -> dict[str, jax.stages.Lowered]:
    """The losses of held-out recorded rows, where a run measures them."""
    config, settings = self.config, self.config.evaluation
    recorded_prompts = config.rollout.recorded_prompts
    if not (settings.every and settings.split and recorded_prompts):
      return {}
    rows = min(config.task.num_prompts(settings.split), settings.num_prompts)
    size = held_out.batch_size(rows, recorded_prompts, self.mesh)
    if not size:
      return {}
    traj = self._empty_rows(
      size, config.rollout.group_size, config.rollout.max_response_tokens
    )
    traj = abstract(traj, mesh_lib.replicated(self.mesh))
    traj = traj.replace(extras={**traj.extras, **_of_data(config, traj)})
    found = described_rows.lowered(
      lambda traj: held_out.program(stages, size).lower(
        state, Batch(frozen=frozen, method=method, traj=traj, key=key)
      ),
      described_rows.with_rewards(config, traj),
      config.method.num_values,
    )
    return {'held out': found}

  def _update(self, stages: Any, state: Any, batch: Batch) -> Any:
    """The update of one minibatch, with scores of the score pass."""
    groups = jax.ShapeDtypeStruct(
      (stages.functions.groups_per_minibatch,),
      jnp.int32,
      sharding=mesh_lib.replicated(self.mesh),
    )
    return described_rows.lowered(
      lambda traj: stages.update_minibatch.lower(
        forward=stages.functions.forward,
        state=state,
        batch=batch.replace(traj=traj),
        group_M=groups,
        reuse_scores=True,
      ),
      batch.traj,
      self.config.method.num_values,
    )

  def _evaluations(
    self, params: Any, key: Any
  ) -> dict[str, jax.stages.Lowered]:
    """The programs of all evaluation sets, see `evaluated`."""
    config, lowered = self.config, {}
    policies = params.get('policies', {})
    params = {k: x for k, x in params.items() if k != 'policies'}
    if OPPONENT in policies:
      params['policies'] = {OPPONENT: policies[OPPONENT]}
    for stage, (call, _) in evaluated(config).items():
      settings = evaluation.engine_config(
        config.rollout, call.group_size, call.beams, call.tokens
      )
      engine = make_engine(
        self.model, call.sampling, settings, self.mesh, self._draft()
      )
      prompts = call.padded(self.mesh.shape) * config.task.traits.players
      traj = self._empty_rows(prompts, call.group_size, call.tokens)
      if config.rollout.turns is None:
        lowered[stage] = engine.generate.lower(params, traj=traj, key=key)
      else:
        found = episode_programs.lowered(engine, params, traj, key, config)
        lowered |= {f'{stage} {name}'.rstrip(): x for name, x in found.items()}
    return lowered | self._options(params)

  def _options(self, params: Any) -> dict[str, jax.stages.Lowered]:
    """The programs of sets whose options are scored, see `scored`."""
    mesh, width = self.mesh, self.config.rollout.max_prompt_tokens
    program, lowered = option_scores.program(self.model, mesh), {}
    for stage, (call, _) in scored(self.config).items():
      batch = call.padded(mesh.shape)
      prompts = (
        np.zeros((batch, width), np.int32),
        np.zeros((batch, width), np.float32),
        np.zeros(batch, np.int32),
      )
      options = [(RecordedResponse(), [], [])] * OPTIONS
      traj = recorded.recorded_rows(prompts, [options] * batch, call.tokens)
      lowered[stage] = program.lower(
        forward=Forward(
          model=self.model, microbatches=call.microbatches(mesh.shape)
        ),
        params=params,
        traj=abstract(traj, mesh_lib.replicated(mesh)),
      )
    return lowered

  def _draft(self) -> draft_model.Loaded | None:
    """The model of speculative decoding and shapes of its parameters."""
    draft = draft_model.planned(self.config, self.model.platform)
    if draft is None:
      return None
    return draft, params_lib.shapes(draft, self.mesh)

  def _reward(self, traj: Any) -> jax.stages.Lowered:
    """Scoring by those reward models whose shape is known."""
    models, params = [], {}
    for source in self.config.reward_models:
      model = reward_models.planned(source, self.config, self.model.platform)
      if model is not None:
        forward = reward_models.forward_of(self.config, model)
        models.append(Scorer(source, forward))
        params[source.name] = params_lib.shapes(model, self.mesh)
    return reward_models.stage(tuple(models), self.mesh).lower(params, traj)

  def _empty_rows(self, prompts: int, group_size: int, tokens: int) -> Any:
    """Returns what `start` puts on the devices: prompts of full width."""
    width = self.config.rollout.max_prompt_tokens

    def make():
      return start_trajectories(
        jnp.zeros((prompts, width), jnp.int32),
        jnp.zeros((prompts, width)),
        jnp.zeros((prompts,), jnp.int32),
        group_size=group_size,
        max_response_tokens=tokens,
      )

    return abstract(jax.eval_shape(make), mesh_lib.rows(self.mesh))
