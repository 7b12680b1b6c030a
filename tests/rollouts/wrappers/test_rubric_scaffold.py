"""Shares of the rubric, and samples that are drawn from their own prompts."""

import functools
import types

import numpy as np
import pytest

from experiments.flags import configuration
from rl_jax.pieces.piece import CheckContext
from rl_jax.records import metrics
from rl_jax.rollouts.wrappers.rubric_scaffold import RubricScaffold
from rl_jax.runs.loop import Trainer
from rl_jax.worlds import Arithmetic, RubricTopics

SMALL = (
  'iterations=1',
  'rollout.num_prompts=4',
  'rollout.group_size=3',
  'evaluation.every=0',
  'guards.log_rollouts=4',
  'model.config.num_layers=1',
  'model.config.width=16',
  'model.config.num_heads=2',
  'model.config.num_kv_heads=1',
  'model.config.head_size=8',
  'model.config.mlp_size=16',
  'verifier.num_workers=0',
)


@pytest.mark.parametrize(
  ('rollout', 'expected'),
  [(60, 0.9795), (70, 0.571), (71, 0.482), (80, 0.036), (90, 0.001)],
)
def test_the_share_falls_over_training(rollout, expected):
  """The sample that sees most, in 350 rollouts."""
  found = RubricScaffold()._share(rollout, 0, 8)
  assert found == pytest.approx(expected, abs=5e-4)


def test_the_share_falls_over_the_group():
  """At the first rollout of groups of eight; a single sample sees all."""
  found = [RubricScaffold()._share(1, k, 8) for k in range(8)]
  expected = [1, 0.857, 0.714, 0.571, 0.429, 0.286, 0.143, 0]
  np.testing.assert_allclose(found, expected, atol=5e-4)
  assert RubricScaffold()._share(1, 0, 1) == pytest.approx(1.0)
  assert RubricScaffold()._share(900, 0, 8) == pytest.approx(0.0)


def sampler(task, serial=0, longest=99):
  """The attributes of a sampler that a wrapper reads."""
  return types.SimpleNamespace(
    task=task,
    next_serial=serial,
    group_size=3,
    num_prompts=2,
    fits=lambda example: len(example.prompt) <= longest,
  )


def test_contexts_show_as_many_criteria():
  """Five criteria, round(2.5) = 2 and none; the last is the prompt itself."""
  task = RubricTopics()
  examples = [task.example('train', i) for i in range(2)]
  piece = RubricScaffold(rollouts=100)
  found = piece.contexts(examples, sampler(task))
  sizes = [(len(x.prompt) - 3) // 2 for x in found]
  assert sizes == [5, 2, 0] * 2
  assert found[2] is examples[0] and found[5] is examples[1]
  for place, context in enumerate(found):
    shown = context.prompt[2:-1]
    items = [shown[i : i + 2] for i in range(0, len(shown), 2)]
    assert set(items) <= set(task.rubric(examples[place // 3]))
  again = piece.contexts(examples, sampler(task))
  assert [x.prompt for x in found] == [x.prompt for x in again]
  later = piece.contexts(examples, sampler(task, serial=400))
  assert [x is y for x, y in zip(later, again, strict=True)].count(True) == 2
  assert all(x is examples[i // 3] for i, x in enumerate(later))
  short = piece.contexts(examples, sampler(task, longest=7))
  assert [len(x.prompt) for x in short] == [3, 7, 3] * 2


def test_parts_of_a_rollout_have_the_same_share():
  """One of two prompts at a time, in the 31st of 100 rollouts: none."""
  task = RubricTopics()
  piece = RubricScaffold(rollouts=100)
  example = task.example('train', 0)
  for serial in (60, 61):
    found = piece.contexts([example], sampler(task, serial=serial))
    assert all(x is example for x in found)
  early = piece.contexts([example], sampler(task, serial=9))
  assert len(early[0].prompt) == 13


def test_tasks_without_criteria_and_episodes_are_refused():
  piece = RubricScaffold()
  with pytest.raises(ValueError, match='Arithmetic has no methods `rubric`'):
    piece.check(CheckContext(task=Arithmetic()))
  config = configuration.build('rubric_topics', 'rusca_rl', SMALL)
  with pytest.raises(ValueError, match='rollout.staleness = 1'):
    rollout = types.SimpleNamespace(
      turns=None, window_tokens=None, staleness=1, speculative=None
    )
    piece.check(CheckContext(rollout=rollout))
  piece.check(CheckContext(task=config.task, rollout=config.rollout))


def lines(tmp_path, name, method, *sets):
  """The log of a run."""
  build = functools.partial(configuration.build, 'rubric_topics', method)
  Trainer(build((*SMALL, *sets)), str(tmp_path / name)).run()
  return metrics.read_jsonl(str(tmp_path / name / metrics.ROLLOUTS))


def test_without_a_share_samples_are_those_of_grpo(tmp_path):
  """E2: the same tokens, rewards and loss; the last sample is always so."""
  plain = lines(tmp_path, 'plain', 'grpo')
  none = ('method.rollout.midpoint=0.0', 'method.rollout.steepness=1e4')
  again = lines(
    tmp_path, 'again', 'rusca_rl', *none, 'method.rollout.rollouts=1'
  )
  assert [x['response'] for x in plain[2::3]] == [
    x['response'] for x in again[2::3]
  ]


@pytest.mark.parametrize('corrected', [False, True])
def test_a_run_is_trained_under_plain_prompts(tmp_path, corrected):
  """The log shows the prompt of the group; only the last sample saw it."""
  name = 'rusca_rl@corrected' if corrected else 'rusca_rl'
  found = lines(tmp_path, 'run', name)
  plain = lines(tmp_path, 'plain', 'grpo')
  same = [
    a['response'] == b['response'] for a, b in zip(found, plain, strict=True)
  ]
  assert [x['prompt'] for x in found] == [x['prompt'] for x in plain]
  assert all(same[2::3]) and not all(same[::3])
