"""Runs on data of verl and TRL with reward functions of theirs."""

import dataclasses
import json

import numpy as np
import pytest

from configs.worlds import bandit
from rl_jax.models.source import ModelSource
from rl_jax.overrides import override
from rl_jax.records.metrics import read_jsonl
from rl_jax.runs import loop
from rl_jax.tasks import ChatTemplate, QuestionAnswer, RewardFunctions

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures('no_mesh_left')]

REWARDS = """
def compute_score(data_source, solution_str, ground_truth, extra_info):
  assert data_source == 'openai/gsm8k' and ground_truth == '7'
  return {'score': len(solution_str) + extra_info['index'], 'acc': 1.0}

def long(prompts, completions, solution, **kwargs):
  assert solution == ['7'] and prompts[0][-1]['role'] == 'user'
  return [float(len(completions[0][0]['content']))]

async def seldom(completions, kind, **kwargs):
  return [1.0 if kind == ['even'] else None]
"""


@pytest.fixture
def train(toy, tmp_path, chat_model, user_modules):
  """(data, answer, functions) -> rows of metrics and of the log."""
  (tmp_path / 'rewards.py').write_text(REWARDS)

  def run(path, answer, functions):
    task = RewardFunctions(
      QuestionAnswer(
        sources={'train': path},
        question='{prompt}',
        answer=answer,
        template=ChatTemplate(),
      ),
      {f'{tmp_path}/rewards.py:{name}': 1.0 for name in functions},
    )
    config = dataclasses.replace(
      bandit.get_config(toy.get_method('reinforce')),
      task=task,
      model=ModelSource(path=chat_model),
    )
    for name, text in {
      'iterations': '2',
      'rollout.num_prompts': '2',
      'rollout.group_size': '2',
      'rollout.max_prompt_tokens': '64',
      'rollout.max_response_tokens': '4',
      'evaluation.every': '0',
      'verifier.num_workers': '1',
    }.items():
      config = override(config, name, text)
    loop.Trainer(config, str(tmp_path / 'run')).run()
    names = ('metrics.jsonl', 'rollouts.jsonl')
    return [read_jsonl(tmp_path / 'run' / name) for name in names]

  return run


def prompts(count):
  return [[{'role': 'user', 'content': f'3+4 ({i})'}] for i in range(count)]


def test_a_parquet_file_of_verl(train, tmp_path):
  """The score is that of the function; acc is the outcome."""
  pa = pytest.importorskip('pyarrow', reason="needs the extra 'data'")
  pq = pytest.importorskip('pyarrow.parquet', reason="needs the extra 'data'")
  rows = [
    {
      'data_source': 'openai/gsm8k',
      'prompt': prompt,
      'ability': 'math',
      'reward_model': {'style': 'rule', 'ground_truth': '7'},
      'extra_info': {'split': 'train', 'index': 100},
    }
    for prompt in prompts(2)
  ]
  pq.write_table(pa.Table.from_pylist(rows), tmp_path / 'train.parquet')
  metrics, log = train(
    str(tmp_path / 'train.parquet'),
    '{reward_model.ground_truth}',
    ['compute_score'],
  )
  assert [row['rollout/reward_errors'] for row in metrics] == [0, 0]
  assert metrics[0]['reward/outcome'] == 1.0
  assert metrics[0]['reward/mean'] >= 100.0
  assert log[0]['prompt'].startswith('3+4 (')


def test_a_jsonl_file_of_trl(train, tmp_path):
  """Two functions, one async and not applicable to half of the rows."""
  path = tmp_path / 'rows.jsonl'
  path.write_text(
    ''.join(
      json.dumps({'prompt': prompt, 'solution': '7', 'kind': kind}) + '\n'
      for prompt, kind in zip(prompts(2), ('even', 'odd'), strict=True)
    )
  )
  metrics, _ = train(str(path), '', ['long', 'seldom'])
  for row in metrics:
    assert row['rollout/reward_errors'] == 0 and row['reward/outcome'] == 0.0
    assert row['reward/seldom'] == row['reward/seldom/not_applicable'] == 0.5
    np.testing.assert_allclose(
      row['reward/mean'], row['reward/long'] + 0.5, rtol=1e-5
    )


def test_a_function_for_another_form_of_prompts_ends_the_start(train, tmp_path):
  """A text has no turns: found by one call, before the first iteration."""
  path = tmp_path / 'rows.jsonl'
  path.write_text(json.dumps({'prompt': prompts(1)[0], 'x': '7'}) + '\n')
  message = r"long needs the columns \['solution'\], but rows have \['prompt', "
  with pytest.raises(ValueError, match=message):
    train(str(path), '{x}', ['long'])
  path = tmp_path / 'texts.jsonl'
  path.write_text(json.dumps({'prompt': '3+4', 'solution': '7'}) + '\n')
  with pytest.raises(ValueError, match='right response to the first prompt'):
    train(str(path), '{solution}', ['compute_score'])
  assert not (tmp_path / 'run' / 'metrics.jsonl').exists()
