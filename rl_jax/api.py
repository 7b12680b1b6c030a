"""The functions of programs: `train` a policy, and `evaluate` one.

import rl_jax
from configs.worlds import bandit
from configs.methods import grpo

config = bandit.get_config(grpo.get_method())
row = rl_jax.train(config, 'runs/bandit')
metrics, outcomes = rl_jax.evaluate('runs/bandit')
"""

from collections.abc import Sequence
import contextlib
import dataclasses
from typing import Any

from absl import logging
import jax
import numpy as np

from rl_jax.config import ExperimentConfig, most_evaluated_tokens
from rl_jax.episodes.turn_taking import OPPONENT
from rl_jax.models.files import hf_classifier
from rl_jax.models.transformer import ModelConfig
from rl_jax.pieces.policies import Loaded
from rl_jax.planning import memory_check
from rl_jax.runs import assembly, directory, loaded_policies
from rl_jax.runs import policy as policy_lib
from rl_jax.runs.judges import make_judges
from rl_jax.runs.loop import Trainer
from rl_jax.runtime import profiling
from rl_jax.runtime.mesh import MeshConfig
from rl_jax.tasks import base


def train(
  config: ExperimentConfig,
  workdir: str,
  *,
  take_over: bool = False,
  allow_change: Sequence[str] = (),
  callbacks: Sequence[Any] = (),
  profile: profiling.Window | None = None,
  timeline: profiling.Window | None = None,
) -> dict[str, Any]:
  """Trains to config.iterations, or continues the run in workdir.

  Args:
    config: what is trained, on what, and by which method.
    workdir: directory of checkpoints, metrics and responses; created.
    take_over: writes also where the lock names another run, which has ended.
    allow_change: paths of fields that the rest of the run may have otherwise.
    callbacks: objects whose methods are called, see runs.callbacks.Callback.
    profile: the iterations to trace into workdir/profile.
    timeline: those whose episodes are drawn in workdir/timeline.json, a trace
      that chrome://tracing and Perfetto show.

  Returns:
    The newest row of metrics.

  Raises:
    ValueError: the configuration does not fit itself, the devices or workdir.
    MemoryError: it does not fit the memory of the devices.
  """
  if timeline is not None and config.rollout.turns is None:
    raise ValueError(
      f'timeline = {timeline.first}:{timeline.last}, but the run has no '
      'episodes: rollout.turns = None'
    )
  with memory_check.guarded(config):
    trainer = Trainer(
      config,
      workdir,
      take_over=take_over,
      allow_change=allow_change,
      callbacks=callbacks,
    )
    trainer.profiler = profiling.Profiler(profile, f'{workdir}/profile')
    if timeline is not None:
      trainer.draw_timeline(timeline)
    logging.info('devices: %s', jax.devices())
    return trainer.run()


def evaluate(
  checkpoint: str,
  config: ExperimentConfig | None = None,
  *,
  step: int | None = None,
  seed: int = 0,
  opponent: str | None = None,
) -> tuple[dict[str, float], dict[str, np.ndarray]]:
  """(metrics, outcomes of every row) of a policy on config.evaluation.

  Args:
    checkpoint: work directory of a run, model directory or GGUF file.
    config: the task and how responses are sampled; None: as in the run of the
      work directory, on all devices.
    step: iteration of a work directory; None: the newest valid checkpoint.
    seed: of sampling.
    opponent: policy of the other player, in games of two.

  Returns:
    What runs.evaluation.Evaluator.run returns.

  Raises:
    ValueError: checkpoint, configuration and model do not fit.
  """
  hf_classifier.check_writes(checkpoint)
  if config is None:
    config = _config_of(checkpoint)
  if opponent and config.task.traits.players != 2:
    name = type(config.task).__name__
    raise ValueError(
      f'opponent = {opponent!r}: {name} is not a game of two players'
    )
  # It reads the data: its errors come before those of the policy.
  check_split(config)
  mesh = assembly.make_mesh(config)
  with jax.set_mesh(mesh):
    model, params, tokenizer = policy_lib.load_checkpoint(
      checkpoint, mesh, step
    )
    config = within(config, model)
    policy = policy_lib.Policy(
      model=model, tokenizer=tokenizer, trainable=params, frozen={}
    )
    if opponent:
      rules = {OPPONENT: Loaded(path=opponent)}
      params = {**params, 'policies': loaded_policies.read(rules, policy, mesh)}
    runner = assembly.make_runner(
      config, None, tokenizer, mesh, split=config.evaluation.split
    )
    with contextlib.closing(runner):
      evaluator = assembly.make_evaluator(
        config,
        policy,
        runner,
        mesh,
        judges=make_judges(config, policy, mesh, assembly.run_key(seed, mesh)),
        seed=seed,
      )
      return evaluator.run(params)


def _config_of(workdir: str) -> ExperimentConfig:
  """The configuration of the run, on all devices."""
  run = directory.run_of(workdir)
  if run is None:
    raise ValueError(
      f'{workdir} is not a work directory of a run, whose task and limits '
      'would be taken: give a config'
    )
  return dataclasses.replace(run, mesh=MeshConfig())


def check_split(config: ExperimentConfig) -> None:
  """Raises ValueError unless the split that is evaluated has prompts."""
  task, split = config.task, config.evaluation.split
  base.check_task(task)
  if split is not None and not task.num_prompts(split):
    counts = {name: task.num_prompts(name) for name in base.SPLITS}
    found = ', '.join(f'{name}: {count}' for name, count in counts.items())
    raise ValueError(
      f'evaluation.split = {split!r}: {type(task).__name__} has no prompts in '
      f'it, but {found}'
    )


def within(config: ExperimentConfig, model: ModelConfig) -> ExperimentConfig:
  """The configuration with prompts as long as the model allows.

  Raises:
    ValueError: the model has no place for a prompt.
  """
  tokens = most_evaluated_tokens(config)
  if tokens >= model.max_positions:
    raise ValueError(
      f'evaluation.max_response_tokens = {tokens}: the model has '
      f'{model.max_positions} positions in all'
    )
  rollout = config.rollout
  prompt = min(rollout.max_prompt_tokens, model.max_positions - tokens)
  rollout = dataclasses.replace(rollout, max_prompt_tokens=prompt)
  return dataclasses.replace(config, rollout=rollout)
