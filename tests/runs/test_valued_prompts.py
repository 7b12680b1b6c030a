"""A model of the success of prompts: its step, and a run that resumes."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from experiments.flags import configuration
from rl_jax.models import heads, transformer
from rl_jax.runs import valued_prompts
from rl_jax.runs.loop import Trainer

SMALL = (
  'iterations=2',
  'rollout.num_prompts=4',
  'rollout.group_size=2',
  'evaluation.every=0',
  'model.config.num_layers=1',
  'model.config.width=16',
  'model.config.num_heads=2',
  'model.config.num_kv_heads=1',
  'model.config.head_size=8',
  'model.config.mlp_size=16',
)


def test_a_step_by_hand(tiny):
  """E1: SGD on the bias of the head: b - 2 rate mean(V - success)."""
  params = tiny.params()
  prompt = jnp.array([[3, 4, 5], [0, 6, 2]], jnp.int32)
  mask = jnp.array([[1.0, 1, 1], [0.0, 1, 1]])
  value = valued_prompts.prompt_values(tiny.CFG, params, prompt, mask)
  hidden = transformer.forward(
    params,
    tiny.CFG,
    prompt[1:, 1:],
    mask[1:, 1:],
    prompt[1:, :1] * 0,
    jnp.ones((1, 1)),
  )  # without the padding
  np.testing.assert_allclose(
    value[1], heads.values(params, hidden[:, 0])[0], rtol=1e-4
  )
  sgd = optax.sgd(0.1)
  step = functools.partial(
    valued_prompts.learned, tiny.CFG, sgd, params, sgd.init(params)
  )
  success = jnp.array([1.0, 0.25])
  after, _ = step((prompt, mask), (success, jnp.ones(2)))
  moved = after['value_head']['b'] - params['value_head']['b']
  expected = -0.1 * 2 * (value - success).mean()
  np.testing.assert_allclose(moved, expected, rtol=1e-4)
  # Of a prompt that was not judged nothing is learned.
  after, _ = step((prompt, mask), (success, jnp.array([1.0, 0.0])))
  moved = after['value_head']['b'] - params['value_head']['b']
  np.testing.assert_allclose(moved, -0.2 * (value - success)[0], rtol=1e-4)


@pytest.mark.slow
def test_a_run_goes_on_as_one_that_was_not_stopped(tmp_path):
  """E0: the state of the selector has the model and its optimizer."""
  build = functools.partial(
    configuration.build, 'configs/worlds/families.py', 'pcl'
  )
  whole = Trainer(build(SMALL), str(tmp_path / 'whole'))
  whole.run()
  first = (*SMALL[1:], 'iterations=1')
  Trainer(build(first), str(tmp_path / 'parts')).run()
  later = Trainer(build(SMALL), str(tmp_path / 'parts'))
  later.run()
  for one, other in zip(
    *(
      jax.tree.leaves(x.parts.collector.selector.state) for x in (whole, later)
    ),
    strict=True,
  ):
    np.testing.assert_array_equal(np.asarray(one), np.asarray(other))
  assert later.parts.collector.selector.state['prompts']['batches'] == 2


def test_a_mixture_is_refused(tmp_path):
  config = configuration.build('configs/worlds/family_mixture.py', 'pcl', SMALL)
  with pytest.raises(ValueError, match='PromptValue has one model of all'):
    Trainer(config, str(tmp_path / 'run'))
