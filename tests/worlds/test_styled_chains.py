"""Five behaviours before the answer, and what rewards them."""

import pytest

from rl_jax.models.piece_tokenizer import PieceTokenizer
from rl_jax.tasks.base import Example
from rl_jax.worlds import FamilyChains, StyledChains, styled_chains

SAID = '<answer>524</answer>'


@pytest.mark.parametrize(
  'style, content',
  [
    ('think', ''),
    ('plan', 'r;i'),
    ('code', 'i(r(314))'),
    ('knowledge', 'r321;i234'),
  ],
)
def test_contents_by_hand(style, content):
  assert styled_chains.written(style, 'ri 314=') == content


def test_examples_are_of_other_digits():
  """Worked rightly, the same for the same prompt."""
  found = styled_chains.written('examples', 'ri 314=')
  assert found == styled_chains.written('examples', 'ri 314=')
  digits, _, steps = found.partition(':')
  turned, raised = steps.split(';')
  assert turned == digits[::-1] and digits != '314'
  assert raised == ''.join(str((int(x) + 1) % 10) for x in turned)


@pytest.mark.parametrize('style', styled_chains.STYLES)
def test_a_teacher_has_form_and_the_answer_of_the_chain(style):
  """Slips are those of FamilyChains, whatever is written before the answer."""
  task, plain = StyledChains(style=style), FamilyChains()
  slips, plain_slips = (
    StyledChains(style=style, slips=0.5),
    FamilyChains(slips=0.5),
  )
  tokenizer = PieceTokenizer(task.alphabet)
  for index in range(20):
    example, asked = task.example('train', index), plain.example('train', index)
    assert example.prompt.endswith(asked.prompt)
    target = task.target(example)
    assert task.reward(example, target) == {'outcome': 1.0, 'form': 1.0}
    for text in (example.prompt, target):
      assert tokenizer.decode(tokenizer.encode(text)) == text
    said = slips.target(example)
    answer = plain_slips.target(asked).partition('>')[2]
    assert said.endswith(f'<answer>{answer}</answer>')
    assert slips.reward(example, said)['form'] == 1.0


@pytest.mark.parametrize(
  'response, outcome, form',
  [
    (f'<plan>r;i</plan>{SAID}', 1, 1),
    ('<plan>r;i</plan><answer>525</answer>', 0, 1),
    (SAID, 1, 0),
    (f'<plan>r</plan><plan>i</plan>{SAID}', 1, 0),
    (f'<plan>r;i</plan>{SAID}5', 1, 0),
    (f'<think>413</think>{SAID}', 1, 0),
    ('524', 0, 0),
  ],
)
def test_rewards_by_hand(response, outcome, form):
  example = Example(prompt='<plan>ri 314=', answer='524', id=0)
  found = StyledChains(style='plan').reward(example, response)
  assert found == {'outcome': outcome, 'form': form}


def test_without_a_behaviour_the_answer_is_all():
  example = Example(prompt='ri 314=', answer='524', id=0)
  task = StyledChains(style='none')
  assert task.reward(example, SAID) == {'outcome': 1.0, 'form': 1.0}
  assert task.reward(example, f'<think>1</think>{SAID}')['form'] == 0.0
