"""Values that a command refuses before it loads or measures anything."""

import json

import pytest

BANDIT = '--config=bandit'
SEARCH = (
  *(BANDIT, '--field=optimizer.learning_rate', '--start=1e-3', '--step=1e-3'),
  *('--resolution=1e-4', '--metric=reward/mean', '--workdir=s'),
)
# Command -> [(arguments, what the line of error says)].
WRONG = {
  'papers.abstention.abstention': [
    (['--config=clues', '--policy=x', f'--level={x}'], f'--level={float(x)}: ')
    for x in ('0', '1.5', 'inf')
  ]
  + [(['--config=clues', '--policy=x', '--seed=-1'], '--seed=-1: ')],
  'papers.decoding.deal': [
    (['--checkpoint=x', f'--{name}={x}'], f'--{name}={x}: expected numbers')
    for name in ('weights', 'tokens')
    for x in ('', 'x', '0,x', 'nan')
  ],
  'evaluate': [
    (
      ['--checkpoint=x', '--data=bandit', '--set=seed=1', '--set=seed=2'],
      '--set=seed=... has two values',
    ),
    (
      ['--checkpoint=x', '--data=bandit', '--temperature=nan'],
      '--temperature=nan: expected a number',
    ),
  ],
  'evaluate_reward': [
    (
      ['--reward_model=x', '--data=y', '--steps', '--scores_out=z'],
      '--scores_out is of comparisons',
    ),
  ],
  'export_weights': [
    (['--checkpoint=x', '--out=y', '--adapters', flag], flag.split('=')[0])
    for flag in ('--reward_model', '--dtype=float32', '--pad_token=p')
  ],
  'tools.influence': [
    (['--config=run.json'], '--config=run.json does not say what')
  ],
  'papers.episodes.latent_strategies': [
    (
      ['--config=spoken_kuhn', '--checkpoint=x', '--out=y', '--seed=-1'],
      '--seed=-1: ',
    ),
  ],
  'papers.episodes.relabelled_forms': [
    (
      ['--config=web_form', '--out=y', '--set=rollout.turns=null'],
      'rollout.turns = None: ',
    ),
    (
      ['--config=web_form', '--out=y', '--own_goals', '--episodes=2'],
      '--episodes=2: none of them filled in a form',
    ),
  ],
  'tools.search': [
    ([*SEARCH, '--start='], '--start= has no number'),
    ([*SEARCH, '--step=inf'], '--step=inf: expected a finite number'),
    (
      [*SEARCH, '--set=seed=1', '--set=seed=2'],
      '--set=seed=... has two values',
    ),
    ([*SEARCH, '--set=method=dapo'], '--set=method=dapo: --method says which'),
    (
      [*SEARCH, '--set=optimizer.learning_rate=1'],
      '--set=optimizer.learning_rate=1: --field says which',
    ),
  ],
  'papers.preferences.step_values': [
    (
      ['--config=logged_moves', '--policy=x', '--out=y', '--seed=-1'],
      '--seed=-1: ',
    ),
  ],
  'papers.worlds.step_labels': [
    (['--config=chain', '--policy=x', '--out=y', '--seed=-1'], '--seed=-1: '),
    (
      ['--config=chain', '--policy=x', '--out=y', '--first=4000'],
      '--first=4000 --prompts=300: --split=train has 4000 prompts',
    ),
  ],
  'sweep': [([BANDIT, '--workdir=s', '--by_stages'], '--by_stages is for')],
  'table': [
    (
      ['--workdir=sweep', '--published=list.json'],
      '--published=list.json: expected {row name: number}',
    ),
    (
      ['--workdir=sweep', '--published=sweep/results.jsonl'],
      '--published=sweep/results.jsonl is not JSON',
    ),
    (
      ['--workdir=sweep', '--published=numbers.json'],
      '--published=numbers.json has grpo: no row is called so. Known: all',
    ),
    (
      ['--workdir=sweep', '--excerpt=sweep/results.jsonl'],
      '--excerpt=sweep/results.jsonl would replace the results',
    ),
    (['--workdir=sweep', '--leaderboard=-1'], '--leaderboard=-1: '),
    (['--workdir=sweep', '--comparison'], '--baseline is missing'),
    (['--workdir=sweep', '--leaderboard=9'], '--baseline is missing'),
    (
      ['--workdir=sweep', '--comparison', '--leaderboard=9', '--baseline=x'],
      'give --leaderboard or --comparison, not both',
    ),
  ],
  'train': [
    (
      [
        *('--config=arithmetic', '--workdir=run'),
        "--set=task.reward_weights={'outcom': 1.0}",
      ],
      "reward_weights names ['outcom'], but the components are ['outcome']",
    ),
  ],
  'papers.episodes.walk_rows': [
    (
      ['--config=keydoor', '--out=y', '--noise=nan'],
      '--noise=nan: expected a number',
    ),
  ],
  'benchmark': [
    (['--out=nowhere/y'], '--out=nowhere/y: no file can be written'),
    (['--stage=pairs', '--mean_length=9'], '--mean_length is not for --stage'),
    (['--stage=turns', '--microbatches=2'], '--microbatches is not for'),
    (['--preset=tiny', '--mean_length=99'], 'mean_length=99.0: expected 1 to'),
  ],
  'benchmarks.accelerator': [
    (['--lines=empty'], '--lines=empty has no lines'),
    (
      ['--lines=sweep/results.jsonl'],
      'results.jsonl:1 is not a line of a stage',
    ),
  ],
  'benchmarks.peers': [(['--lines=empty'], '--lines=empty has no lines')],
  'benchmarks.scaling': [
    (['--out=y'], 'give --axis, to measure, or --figure, to draw'),
    (['--out=empty', '--figure=f.png'], 'empty has less than two points'),
    (['--out=nowhere/y', '--axis=group_size'], '--out=nowhere/y: no file'),
    (['--out=y', '--axis=group_size', '--repeats=0'], '--repeats=0: '),
  ],
  'benchmarks.verification': [
    (['--num_workers=0'], '--num_workers=0: '),
    (['--repeats=0'], '--repeats=0: '),
    (['--seconds=-1'], '--seconds=-1: '),
  ],
}


@pytest.fixture(scope='module')
def place(tmp_path_factory):
  """A folder with a sweep of two runs and files of wrong contents."""
  place = tmp_path_factory.mktemp('place')
  (place / 'sweep').mkdir()
  lines = [
    {'digest': str(n), 'setting': {'seed': n}, 'last': {'reward/mean': 1.0}}
    for n in range(2)
  ]
  text = ''.join(json.dumps(line) + '\n' for line in lines)
  (place / 'sweep/results.jsonl').write_text(text)
  (place / 'list.json').write_text('[1]')
  (place / 'numbers.json').write_text('{"grpo": 0.5}')
  (place / 'empty').write_text('')
  return place


@pytest.fixture(scope='module')
def answers(place, answers_of):
  """The answers of every binary; nothing is written."""
  before = sorted(place.rglob('*'))
  commands = {name: [x for x, _ in WRONG[name]] for name in WRONG}
  found = answers_of(place, commands)
  assert sorted(place.rglob('*')) == before
  return found


@pytest.mark.parametrize('name', WRONG)
def test_the_value_is_named_in_one_line(answers, name):
  """Exit code 2."""
  for (arguments, part), (code, text, raised) in zip(
    WRONG[name], answers[name], strict=True
  ):
    assert (code, raised) == (2, None), (arguments, text)
    (line,) = text.strip().splitlines()
    assert line.startswith('error: ') and part in line, arguments
