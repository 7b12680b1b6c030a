"""Texts that are written under instructions, and models that score them."""

import jax
import numpy as np
import pytest

from experiments import evaluate_reward
from rl_jax.models import params as params_lib
from rl_jax.models import presets
from rl_jax.models.tokenizer import CharTokenizer
from rl_jax.worlds import InstructedTexts, InstructionPairs


def reward(asked, response):
  """The reward under these instructions."""
  task = InstructedTexts()
  example = task.example('train', 0)
  return task.reward(
    type(example)(prompt='', answer='', id=0, meta={'asked': asked}), response
  )


@pytest.mark.parametrize(
  ('asked', 'response', 'followed', 'formed'),
  [
    ('BCE', 'abcabd', 2 / 3, 1.0),
    ('BC', 'aacdcd', 1.0, 1.0),
    ('DN', 'abcabd', 0.0, 1.0),
    ('BE', 'abcad', 0.0, 0.0),  # five letters
    ('BE', 'abcaabd', 0.0, 0.0),  # seven
    ('BE', 'abcaBd', 0.0, 0.0),
    ('BE', '', 0.0, 0.0),
  ],
)
def test_the_reward_by_hand(asked, response, followed, formed):
  found = reward(asked, response)
  assert found == {'outcome': pytest.approx(followed), 'formed': formed}


def test_the_reward_is_that_of_the_comparisons():
  """E0: a prompt and its response are a text of InstructionPairs."""
  task, pairs = InstructedTexts(), InstructionPairs()
  for index in range(50):
    example = task.example('train', index)
    text = task.target(example)
    whole = (example.prompt + text).removeprefix('?')
    own = {**pairs.reward(None, whole), 'formed': 1.0}
    assert task.reward(example, text) == own
    assert set(example.prompt + text) <= set(task.alphabet)


def test_the_order_of_instructions_changes_nothing():
  """E0."""
  assert reward('BCE', 'abcabd') == reward('ECB', 'abcabd')


def test_a_model_scores_a_text_alike_wherever_the_prompt_ends():
  """E1: what is learned from comparisons holds for samples."""
  tokenizer = CharTokenizer(InstructedTexts().alphabet)
  model = presets.small(
    vocab_size=tokenizer.vocab_size, max_positions=32, value_head=True
  )
  params = params_lib.init_params(model, jax.random.key(0))
  params['model']['embed'] *= 30
  params['value_head']['w'] += 1.0

  def scores(*pairs):
    return evaluate_reward.scores(model, params, tokenizer, pairs, False, 2)

  compared = scores(('?', 'BE=abcadd'), ('?', 'BCE=abcadd'))
  sampled = scores(('?BE=', 'abcadd'), ('?BCE=', 'abcadd'))
  np.testing.assert_allclose(sampled, compared, rtol=1e-5, atol=1e-5)
  assert abs(compared[0] - compared[1]) > 1e-3


def test_limits_of_sizes():
  with pytest.raises(ValueError, match='InstructedTexts.num_train = 0'):
    InstructedTexts(num_train=0)
