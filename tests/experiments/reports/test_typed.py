"""A run is named by the words that the user typed, which join no runs."""

import pytest

from experiments.reports import typed


@pytest.mark.parametrize(
  ('words', 'expected'),
  [
    (('bandit', 'grpo'), 'grpo'),
    (('bandit', 'ppo_max@no_kl'), 'ppo_max@no_kl'),
    (('a/config.py', '../mine/method.py'), 'method'),
    (('a/config.py', '~/method.py@half'), 'method@half'),
    (
      ('bandit', 'grpo', ['seed=3', 'method.losses.PPOClip.clip_high=0.28']),
      'grpo PPOClip.clip_high=0.28',
    ),
    (
      (
        *('bandit', 'grpo', ['method.losses.KLPenalty=null']),
        ['method.weights=Mine(a=1)', 'evaluation.sets=EvaluationSet()'],
      ),
      'grpo -KLPenalty +Mine(a=1)',
    ),
    (('run/experiment.json', None), None),
  ],
)
def test_the_method_is_named_with_its_changes(words, expected, tmp_path):
  """By the file that it is in; of a JSON file nothing is known."""
  typed.Typed(*words).write(str(tmp_path))
  assert typed.method_of(str(tmp_path)) == expected


@pytest.mark.parametrize('text', ['', '[]', '{"method": 3}', '{"set": []}'])
def test_a_damaged_file_names_nothing(text, tmp_path):
  """And neither does none."""
  assert typed.method_of(str(tmp_path)) is None
  (tmp_path / typed.FILE).write_text(text)
  assert typed.method_of(str(tmp_path)) is None
