"""Smoothed BLEU by hand."""

import numpy as np
import pytest

from rl_jax.tasks.base import Example
from rl_jax.tasks.bleu_reward import bleu, bleuberi, tokens

CAT = 'the cat is on the mat'


def test_by_hand():
  """p = 6/7, 2/3, 2/5, 1/4 and no brevity; sacrebleu gives 0.4855."""
  found = bleu('the cat sat on the mat', [CAT])
  expected = (6 / 7 * 2 / 3 * 2 / 5 * 1 / 4) ** 0.25
  np.testing.assert_allclose(found, expected, rtol=1e-12)
  assert f'{found:.4f}' == '0.4889'


def test_brevity_is_of_the_shortest_reference():
  """3 of 6 tokens: p = 1, 1, 1, 1/1 and exp(1 - 6 / 3)."""
  np.testing.assert_allclose(bleu('the cat is', [CAT]), np.exp(-1))
  assert bleu('the cat is', [CAT, 'a b c']) == 1.0


def test_a_copy_has_one_and_nothing_has_none():
  assert bleu(CAT, [CAT]) == bleu(CAT, ['no', CAT]) == 1.0
  assert bleu('', [CAT]) == 0.0
  # A word is matched as often as one reference has it.
  twice = bleu('the the the', ['the mat', 'mat the the'])
  np.testing.assert_allclose(twice, (3 / 4 * 2 / 3 * 1 / 2 * 1) ** 0.25)


def test_the_reward_reads_tags_and_references():
  example = Example('', CAT, 0)
  assert bleuberi(example, f'I think so. <answer>{CAT}</answer>') == 1.0
  assert bleuberi(example, f'I think so. {CAT}') < 1.0
  several = Example('', '', 0, meta={'references': ('x', CAT)})
  assert bleuberi(several, CAT) == 1.0


@pytest.mark.parametrize(
  'text, expected',
  [
    ("It's 1,000.5, (ok)!", "It's 1,000.5 , ( ok ) !"),
    ('a-b 3-4 &amp; c.', 'a-b 3 - 4 & c .'),
    ('x=1&copy=2', 'x = 1 & copy = 2'),  # four entities only
  ],
)
def test_tokens(text, expected):
  """Numbers keep their signs, and words their hyphens."""
  assert tokens(text) == expected.split()
