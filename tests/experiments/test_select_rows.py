"""The program that keeps rows: what it reads, refuses and writes."""

import importlib
import json

from absl import flags
from absl.testing import flagsaver
import jax
import numpy as np
import pytest

from experiments import select_rows
from experiments.papers.worlds import family_rows
from rl_jax.models import ModelConfig
from rl_jax.models import params as params_lib
from rl_jax.models.files import model_dir
from rl_jax.models.tokenizer import CharTokenizer
from rl_jax.worlds import Families


@pytest.fixture(autouse=True)
def its_flags():
  """Another program that was imported has a --reward of another type."""
  others = {name: flags.FLAGS[name] for name in flags.FLAGS}
  importlib.reload(select_rows)
  with flagsaver.flagsaver():
    for name in flags.FLAGS:
      flags.FLAGS[name].unparse()
    yield
  for name, flag in others.items():
    flags.FLAGS[name] = flag


@pytest.fixture
def pool(tmp_path):
  """Rows of two to six digits, and their file."""
  rows = family_rows.rows(Families(min_digits=2, max_digits=6, num_train=20))
  path = tmp_path / 'pool.jsonl'
  path.write_text(''.join(json.dumps(row) + '\n' for row in rows))
  return rows, path


def call(tmp_path, path, capsys, **given):
  """(printed, rows that are kept) of a call."""
  out = tmp_path / 'kept.jsonl'
  texts = {k: x if isinstance(x, list) else str(x) for k, x in given.items()}
  with flagsaver.as_parsed(data=str(path), out=str(out), **texts):
    flags.FLAGS.mark_as_parsed()
    select_rows.main([])
  printed = json.loads(capsys.readouterr().out.splitlines()[-1])
  return printed, [json.loads(line) for line in out.read_text().splitlines()]


def test_the_longest_rows_are_kept_as_they_were(tmp_path, pool, capsys):
  """In the order of the file, with all fields."""
  rows, path = pool
  printed, kept = call(
    tmp_path, path, capsys, rule='length', keep=0.25, describe=['difficulty']
  )
  length = np.array([len(row['completion']) for row in rows])
  expected = np.sort(np.argsort(-length, kind='stable')[:5])
  assert kept == [rows[i] for i in expected]
  assert printed['kept'] == 5
  assert printed['difficulty_kept'] > printed['difficulty']


def test_random_rows_are_of_the_seed(tmp_path, pool, capsys):
  _, path = pool
  found = [
    call(tmp_path, path, capsys, rule='random', keep=4.0, seed=seed)
    for seed in (1, 1, 2)
  ]
  assert found[0] == found[1]
  assert found[0][1] != found[2][1]


def test_the_hardest_prompts_have_the_least_reward(tmp_path, pool, capsys):
  """BLEUBERI: of empty and right responses the empty ones are kept."""
  rows, path = pool
  said = [row['completion'] if i % 4 else '' for i, row in enumerate(rows)]
  responses = tmp_path / 'said.json'
  responses.write_text(json.dumps({'responses': said}))
  given = {
    'rule': 'reward',
    'reward': 'rl_jax.tasks.bleu_reward:bleuberi',
    'responses': str(responses),
  }
  _, kept = call(tmp_path, path, capsys, keep=5.0, part='lowest', **given)
  assert kept == rows[::4]
  responses.write_text(json.dumps({'responses': said[:3]}))
  with pytest.raises(ValueError, match='has 3 responses, --data 20 rows'):
    call(tmp_path, path, capsys, keep=5.0, **given)


def test_scores_of_models(tmp_path, pool, capsys):
  """With equal models the reduction is 0 and the first rows are kept; their
  losses are those of a model that draws evenly.
  """
  _, path = pool
  tokenizer = CharTokenizer(Families.alphabet)
  model = ModelConfig(
    vocab_size=tokenizer.vocab_size,
    num_layers=1,
    width=16,
    num_heads=2,
    num_kv_heads=1,
    head_size=8,
    mlp_size=24,
  )
  params = params_lib.init_params(model, jax.random.key(0))
  params['model']['embed'] = params['model']['embed'] * 0.0
  folder = str(tmp_path / 'model')
  model_dir.save_model(folder, model, params, tokenizer)
  both = {'model': folder, 'conditional': folder}
  scores = tmp_path / 'scores.jsonl'
  printed, kept = call(
    tmp_path,
    path,
    capsys,
    rule='loss_reduction',
    keep=3.0,
    batch_size=8,
    scores_out=scores,
    **both,
  )
  assert printed['score_mean'] == 0.0 and len(kept) == 3
  lines = [json.loads(x) for x in scores.read_text().splitlines()]
  assert [x['row'] for x in lines if x['kept']] == [0, 1, 2]
  printed, _ = call(
    tmp_path, path, capsys, rule='loss', keep=3.0, model=folder, batch_size=8
  )
  assert printed['score_mean'] == pytest.approx(np.log(model.vocab_size), 1e-5)


@pytest.mark.parametrize(
  ('given', 'message'),
  [
    ({'rule': 'loss'}, 'loss with no --model'),
    ({'rule': 'random', 'model': 'x'}, 'random with --model: .* none'),
    ({'rule': 'joint_rank', 'difficulty': 'family'}, "row 0 has '.'"),
    ({'rule': 'joint_rank', 'difficulty': 'x'}, 'row 0 has None'),
    ({'rule': 'length', 'keep': 'nan'}, '--keep=nan: it is above 0'),
    ({'rule': 'length', 'keep': 0.01}, '--keep=0.01 of 20 rows would keep 0'),
    ({'rule': 'length', 'keep': 2.5}, '--keep=2.5: from 1 on'),
    ({'rule': 'length', 'keep': 21.0}, 'of 20 rows would keep 21'),
  ],
)
def test_wrong_flags_are_named(tmp_path, pool, capsys, given, message):
  with pytest.raises(ValueError, match=message):
    call(tmp_path, pool[1], capsys, **given)


def test_rows_whose_outcomes_differ_are_drawn(tmp_path, pool, capsys):
  """eva: with as many draws as such rows they are these, of any seed."""
  rows, path = pool
  mixed = {1, 4, 7}
  samples = [[float(i in mixed), 0.0, None] for i in range(len(rows))]
  outcomes = tmp_path / 'outcomes.json'
  outcomes.write_text(json.dumps({'samples': samples}))
  given = {'rule': 'spread', 'outcomes': outcomes, 'draw': True, 'keep': 3}
  for seed in (0, 1):
    _, kept = call(tmp_path, path, capsys, **given, seed=seed)
    assert kept == [rows[i] for i in sorted(mixed)]
  outcomes.write_text(json.dumps({'samples': samples[1:]}))
  with pytest.raises(ValueError, match='samples of 19 rows, --data 20'):
    call(tmp_path, path, capsys, **given)
  with pytest.raises(ValueError, match='--draw with --part=lowest'):
    call(tmp_path, path, capsys, **given, part='lowest')


def test_solved_rows_are_discarded(tmp_path, pool, capsys):
  """VerIPO: what is not solved stays, and a share of the rest."""
  rows, path = pool
  solved = set(range(5, 15))
  samples = [[1.0, float(i in solved)] for i in range(len(rows))]
  outcomes = tmp_path / 'outcomes.json'
  outcomes.write_text(json.dumps({'samples': samples}))
  given = {'rule': 'unsolved', 'outcomes': outcomes}
  _, kept = call(tmp_path, path, capsys, **given, keep=0.2)
  assert len(kept) == 12
  assert [x for i, x in enumerate(rows) if i not in solved] == [
    x for x in kept if x not in rows[5:15]
  ]
  for wrong in ({'keep': 2.0}, {'keep': 0.2, 'part': 'lowest'}):
    with pytest.raises(ValueError, match='--keep is a share below 1'):
      call(tmp_path, path, capsys, **given, **wrong)
