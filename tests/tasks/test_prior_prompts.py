"""Five behaviours before an answer: the prompt and the form."""

import pytest

from experiments.flags import configuration
from rl_jax.tasks import prior_prompts
from rl_jax.tasks.base import Example

EXAMPLE = Example(prompt='', answer='3', id=0)
TAGS = tuple(prior_prompts.BEHAVIOURS)


@pytest.mark.parametrize('tag', TAGS)
@pytest.mark.parametrize(
  ('text', 'expected'),
  [
    ('<T>a</T><answer>3</answer>', 1.0),
    (' <T>a\nb</T>\n\n<answer>3</answer>\n', 1.0),
    ('<T></T><answer></answer>', 1.0),
    ('<answer>3</answer>', 0.0),  # a tag is missing
    ('<T>a</T><T>b</T><answer>3</answer>', 0.0),  # doubled
    ('<T>a</T><answer>3</answer> so', 0.0),  # text after it
    ('so <T>a</T><answer>3</answer>', 0.0),
    ('<T>a</T> so <answer>3</answer>', 0.0),
    ('<T>a<T>b</T></T><answer>3</answer>', 0.0),  # nested
    ('<T>print("<answer>")</T><answer>3</answer>', 0.0),  # inside of code
    ('<answer>3</answer><T>a</T>', 0.0),
    ('<T>a</T><answer>3', 0.0),
  ],
)
def test_the_form_by_hand(tag, text, expected):
  reward = getattr(prior_prompts, tag)
  assert reward(EXAMPLE, text.replace('T>', f'{tag}>')) == expected


def test_the_form_of_another_behaviour_is_not_enough():
  text = '<plan>a</plan><answer>3</answer>'
  found = {tag: getattr(prior_prompts, tag)(EXAMPLE, text) for tag in TAGS}
  assert found == dict.fromkeys(TAGS, 0.0) | {'plan': 1.0}


def test_a_tag_that_the_prompt_opens_belongs_to_the_response():
  opened = Example(prompt='', answer='3', id=0, prefill='<think>')
  assert prior_prompts.think(opened, 'a</think><answer>3</answer>') == 1.0
  assert prior_prompts.think(EXAMPLE, 'a</think><answer>3</answer>') == 0.0


@pytest.mark.parametrize('tag', TAGS)
def test_configurations_differ_by_prompt_and_form_only(tag):
  """Half of the reward is the form's; the right answer is the same."""
  config = configuration.build(f'configs/prior_prompts.py@{tag}', 'grpo')
  assert config.task.reward_weights[tag] == 0.5
  question = config.task.task
  assert f'<{tag}>' in question.template.user
  plain = configuration.build('configs/prior_prompts.py', 'grpo')
  assert plain.task.task.sources == question.sources
  assert plain.task.task.extract == question.extract == 'answer_tags'
