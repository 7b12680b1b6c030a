"""Wrong flags of every binary: one line of error, never a traceback."""

import json
import os
import pathlib
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
# What a place holds: a file or folder of the fixture.
BANDIT = '--config=bandit'
NUMBERS = ('-1', '0', '1.5', 'nan', 'inf', '1e400', 'x', '', '99999999999999')


def each(flags, values, *rest):
  """A command for each flag, and each of its values."""
  return [
    [f'--{flag}={value}', *rest] for flag in flags.split() for value in values
  ]


# Sizes that no machine has, the second of them one that int32 can count.
HUGE = ('99999999999999', '2147483647')
SIZES = [
  *('rollout.num_prompts', 'rollout.group_size', 'rollout.max_prompt_tokens'),
  *('rollout.max_response_tokens', 'evaluation.num_samples', 'mesh.tensor'),
  *('model.config.width', 'model.config.mlp_size', 'model.config.num_layers'),
  *('model.config.num_heads', 'model.config.head_size', 'model.lora_rank'),
  *('verifier.num_workers', 'task.num_contexts', 'task.num_actions'),
  *('mesh.data', 'mesh.fsdp', 'mesh.sequence', 'update.minibatch_prompts'),
]
TOO_LARGE = [f'{path}={size}' for path in SIZES for size in HUGE] + [
  *('optimizer.warmup_steps=99999999999999', 'update.epochs=99999999999999'),
  *('model.config.max_positions=99999999999999', 'seed=99999999999999999999'),
]
PATHS = ('nowhere', 'folder', 'text', 'empty.jsonl', 'binary.jsonl', '', 'a\0b')
TRAIN = (BANDIT, '--workdir=run')
EVALUATE = ('--checkpoint=nowhere', '--data=bandit')
MODEL = ('--checkpoint=model', '--data=bandit')
OWN = ('--checkpoint=model', '--data=rows.jsonl')
SETS = [
  *('seed=x', 'seed=1.5', 'seed=null', 'seed=99999999999999999999'),
  *('iterations=-1', 'iterations=x', 'iterations=null', 'iterations=nan'),
  *('rollout.group_size=0', 'rollout.num_prompts=0'),
  *('rollout.temperature=0', 'rollout.temperature=nan', 'rollout.stop=5'),
  *('rollout.temperature=inf', 'rollout.max_response_tokens=99999999999'),
  *('rollout.max_prompt_tokens=0', 'rollout.slots=0', 'rollout.slots=x'),
  *('rollout.overlong_prompt=maybe', 'rollout.stop=("a",5)', 'rollout=null'),
  *('optimizer.learning_rate=nan', 'optimizer.learning_rate=-1'),
  *('optimizer.learning_rate=x', 'optimizer.learning_rate=inf'),
  *('optimizer.schedule=square', 'optimizer.name=none', 'optimizer.b2=2'),
  *('optimizer.max_grad_norm=-1', 'optimizer.warmup_steps=-5', 'optimizer=1'),
  *('model.path=nowhere', 'model.path=folder', 'model.path=text'),
  *('model.path=5', 'model.config.width=0', 'model.config.width=-3'),
  *('model.config.num_layers=0', 'model.config.num_heads=3', 'model=bandit'),
  *('model.compute_dtype=int8', 'model.attention=none', 'model.lora_rank=-1'),
  *('model.config.head_size=0', 'model.config.mlp_size=x', 'model.config=null'),
  *('mesh.data=0', 'mesh.data=-1', 'mesh.data=64', 'mesh.tensor=x', 'mesh=3'),
  *('update.epochs=0', 'update.minibatch_prompts=3', 'update.epochs=x'),
  *('update.microbatch_prompts=0', 'update.pack=x', 'update=None'),
  *('evaluation.every=-1', 'evaluation.num_prompts=0', 'evaluation.split=dev'),
  *('evaluation.sets=("a",)', 'evaluation.sets=5', 'evaluation.split=null'),
  *('evaluation.batch_prompts=0', 'evaluation.num_samples=-1'),
  *('checkpoint.every=0', 'checkpoint.keep_last=0', 'checkpoint.every=x'),
  *('checkpoint.keep_best=-1', 'checkpoint.on_save_error=maybe'),
  *('verifier.num_workers=-1', 'verifier.num_workers=100000'),
  *('verifier.timeout_seconds=0', 'verifier.timeout_seconds=nan'),
  *('verifier.memory_limit_bytes=-1', 'verifier.on_timeout=maybe'),
  *('task.reward_weights={}', 'task.reward_weights={"outcome": 1e999}'),
  *('task.reward_weights=5', 'task.reward_weights={"x": 1}', 'task=null'),
  *('task.reward_weights={"outcome": "x"}', 'task.reward_weights=[1]'),
  *('task.num_contexts=0', 'task.num_contexts=x', 'task=Bandit', 'task=5'),
  *('task.num_actions=99999999999', 'task.seed=x', 'method=null', 'method=5'),
  *('method.losses=null', 'method.losses=5', 'method.losses=(1,)'),
  *('method.losses=PPOClip(clip_low=5)', 'method.losses=PPOClip(x=1)'),
  *('method.losses=PPOClip(', 'method.aggregation=null', 'method.credit=null'),
  *('method.losses.PPOClip.clip_low=nan', 'method.losses.9.clip_low=1'),
  *('method.aggregation=PPOClip()', 'method.credit=(PPOClip(),)'),
  *('guards.max_logp_gap=-1', 'guards.max_logp_gap=x', 'guards=5'),
  *('guards.max_skipped_in_a_row=-1', 'guards.log_rollouts=x', '=', '=5'),
  *('x', '.=5', 'seed.x=5', 'task..=1', 'rollout.=1', '', 'é=1', '\ud800=1'),
]
ADDS = [
  *(
    'method.losses=GroupCenter()',
    'method.losses=5',
    'method.losses=Nothing()',
  ),
  *('method.weights=PPOClip()', 'seed=PPOClip()', 'x', '', 'method=PPOClip()'),
  *('method.losses=PPOClip(1)', 'method.losses=PPOClip(**{})', 'task=Bandit()'),
  *('method.losses=__import__("os")', 'method.losses=(lambda: 1)()'),
  *('method.losses=' + '(' * 5000, 'method.losses=' + 'PPOClip(' * 500),
  *('evaluation.sets=Bandit()', 'evaluation.sets=EvaluationSet()'),
  *('evaluation.sets=EvaluationSet(name="a", split="x")', 'rollout.stop=5'),
  'evaluation.sets=EvaluationSet(name="a", task=5)',
]
WRONG = {
  'train': [
    *([f'--set={text}', *TRAIN] for text in SETS),
    *([f'--add={text}', *TRAIN] for text in ADDS),
    *([f'--set={text}', *TRAIN] for text in TOO_LARGE),
    *each(
      'config', (*PATHS, 'configs/', '..', 'methods/grpo'), '--workdir=run'
    ),
    *each('method', ('', 'x', 'grpo@x', '@', 'grpo@', '..', 'a.b'), *TRAIN),
    *each(
      'workdir', ('', 'text', 'text/run', 'a*b', 'a\0b', 'b' * 300), BANDIT
    ),
    *each('profile', ('', '5', '3:2', 'x:y', '-1:2', '99:100'), *TRAIN),
    *each('process_id', NUMBERS, *TRAIN),
    *each('num_processes', NUMBERS, *TRAIN),
    *each('coordinator', ('', 'x', 'nowhere:x'), *TRAIN),
    *([*TRAIN, word] for word in ('word', '--unknown', '--take_over=x')),
    *([], [BANDIT], ['--workdir=run'], ['--config', '--workdir=run']),
  ],
  'evaluate': [
    *each('checkpoint', PATHS, '--data=bandit'),
    *each('data', (*PATHS, 'tfds:nowhere', 'x.parquet'), '--checkpoint=model'),
    *each('step num_samples max_new_tokens limit seed', NUMBERS, *EVALUATE),
    *each('split', ('dev', '', 'train '), *MODEL),
    *each('num_samples', ('-1', *HUGE), *MODEL),
    *each('num_workers', ('-1', '100000', *HUGE), *MODEL),
    *each('max_new_tokens', ('0', '-1', '99999999999999'), *MODEL),
    *each('max_prompt_tokens limit batch_prompts', ('0', '-1'), *MODEL),
    *each('temperature', ('0', '-1', 'nan'), *MODEL),
    *each('step', ('-1', '7'), *MODEL),
    *each('out', ('nowhere/x.json', 'folder'), *MODEL),
    *each('opponent', ('model',), *MODEL),  # no game
    *each('question answer', ('{missing}', ''), *OWN),
    *each('gold', ('maybe', 'boxed'), *OWN),
    *each('template', ('', 'no slot'), *OWN),
    *each('extract verifier', ('maybe', ''), *OWN),
  ],
  'sft': [
    *each('data', PATHS, '--model=model', '--out=out'),
    *each('model', PATHS, '--data=pairs.jsonl', '--out=out'),
    *each('config', PATHS, '--out=out'),
    *(
      [f'--{flag}={value}', '--data=pairs.jsonl', '--model=model', '--out=out']
      for flag, value in (
        *(('steps', x) for x in ('-1', '1.5')),
        *(('evaluate_every', x) for x in ('0', '-1')),
        *(('batch_size', x) for x in ('0', '-1', *HUGE)),
        *(('microbatches', x) for x in ('0', '-1', '3')),
        *(('learning_rate', x) for x in ('-1', 'nan', 'inf')),
        *(('warmup_steps', x) for x in ('-1', '1e9', HUGE[0])),
        *(('max_prompt_tokens', x) for x in ('0', '1', '-1', *HUGE)),
        *(('max_response_tokens', x) for x in ('0', '1', '-1', *HUGE)),
        *(('seed', x) for x in ('x', '99999999999999999999')),
        *(('stop_accuracy', x) for x in ('x', 'nan')),
        *(('set', x) for x in ('seed=x', 'x', 'sede=1')),
      )
    ),
    *each('out', ('', 'text', 'text/out', 'folder'), '--data=pairs.jsonl'),
    ['--data=pairs.jsonl', BANDIT, '--out=out'],
    ['--data=pairs.jsonl', '--model=model', '--out=folder/../model'],
    [],
  ],
  'export_weights': [
    *each('checkpoint', PATHS, '--out=out'),
    *each('out', ('', 'text', 'text/out', 'folder'), '--checkpoint=model'),
    *each('dtype', ('int8', ''), '--checkpoint=model', '--out=out'),
  ],
  'import_weights': [
    *each('source', PATHS, '--out=out'),
    *each('source', ('empty.gguf', 'broken', 'text.gguf'), '--out=out'),
    *each('param_dtype', ('int8', ''), '--source=model', '--out=out'),
    *each('adapters', PATHS, '--source=model', '--out=out'),
    *each('untrained', ('x', '-1', '9' * 20), '--source=model', '--out=out'),
  ],
  'play': [
    *each('checkpoint', PATHS),
    *each('task', PATHS),
    *each('index', ('-1', 'x', '99999999'), '--task=keydoor'),
    *each('set', ('x', 'task.size=99'), '--task=keydoor'),
    [],
  ],
  'rollout_rows': [
    *each('workdirs', (*PATHS, 'run1', 'run2'), '--out=x.jsonl'),
    *each('out', ('', 'folder', 'nowhere/x'), '--workdirs=run2'),
  ],
  'papers.preferences.best_of_wins': [
    *each('workdir', (*PATHS, 'run1', 'run2'), '--reference=run2'),
    *each('n', ('', '0', 'x', '99'), '--workdir=run1', '--reference=run1'),
  ],
  'evaluate_reward': [
    *each('reward_model', (*PATHS, 'model'), '--data=pairs.jsonl'),
    *each(
      'scores_out',
      ('', 'folder', 'nowhere/x'),
      '--data=pairs.jsonl',
      '--reward_model=model',
    ),
  ],
  'pipeline': [*each('pipeline', PATHS, '--workdir=p'), ['--workdir=p'], []],
  'plan': [
    *each('devices', ('-1', '0', '3', 'x', HUGE[0]), BANDIT),
    *each('mesh', ('0,1,1', 'x', '1', '1,1,1,1,1', '-1,1,1'), BANDIT),
    *each('card', ('abacus', ''), BANDIT),
    *each('flops', ('-1', '0', 'nan', 'inf'), BANDIT),
    *each('bandwidth interconnect', ('-1', '0', 'nan'), BANDIT),
    *each('responses', ('x', '0', '-1', ''), BANDIT, '--nocompile'),
    *each('config', PATHS),
    *([f'--set={text}', BANDIT, '--nocompile'] for text in SETS[::3]),
  ],
  'plot': [
    *each('workdirs', PATHS, '--out=x.png'),
    *each('out', ('', 'folder'), '--workdirs=run1'),
    *each('x', ('time', ''), '--workdirs=run1', '--out=x.png'),
    *each('window', ('x',), '--workdirs=run1', '--out=x.png'),
    *each('metrics', ('nothing', ''), '--workdirs=run1', '--out=x.png'),
  ],
  'report': [
    *each('workdirs', PATHS, '--out=x.html'),
    *each('workdir', PATHS, '--out=x.html'),
    *each('results', PATHS, '--out=x.html'),
    *each('paper', ('nothing', '..', ''), '--out=x.html'),
    *each('out', ('', 'folder'), '--workdirs=run1'),
    *each('max_megabytes', ('-1', 'nan', 'x'), '--workdirs=run1', '--out=x'),
    *each('leaderboard', ('x',), '--workdirs=run1', '--out=x'),
    *each('baseline', ('nothing',), '--workdirs=run1', '--out=x'),
  ],
  'table': [
    *each('workdir', PATHS),
    *each('paper', ('nothing', '..', '')),
    *each('format', ('html', ''), '--paper=bandit_methods'),
    *each('leaderboard', ('x',), '--paper=bandit_methods'),
    ['--update'],
  ],
  'list_methods': [
    *each('diff', ('grpo', 'grpo,x', 'a,b,c', 'grpo,grpo@x')),
    ['--verbose=x'],
  ],
  'tools.compare_methods': [
    *each('methods', ('x', 'grpo,,x'), BANDIT, '--workdir=c'),
    *each('baseline', ('', 'x'), BANDIT, '--methods=grpo', '--workdir=c'),
    *each('seeds', ('0', '-1', 'x'), BANDIT, '--methods=grpo', '--workdir=c'),
    *each('config', PATHS, '--workdir=c'),
    *each('workdir', ('', 'text', 'text/c'), BANDIT, '--methods=grpo'),
    *([f'--set={x}', BANDIT, '--workdir=c'] for x in ('x', 'a=b')),
  ],
  'sweep': [
    *each('paper', ('nothing', '..', ''), '--workdir=s'),
    *each('config', PATHS, '--workdir=s'),
    *each('method', ('', 'x', 'grpo,x'), BANDIT, '--workdir=s'),
    *each('seeds', ('0', '-1', 'x'), BANDIT, '--workdir=s'),
    *each('shard', ('x', '1', '2/2', '-1/2', '0/0'), BANDIT, '--workdir=s'),
    *each('processes', ('0', '-1', 'x'), BANDIT, '--workdir=s'),
    *each('workdir', ('', 'text', 'text/s'), BANDIT),
    *([f'--set={x}', BANDIT, '--workdir=s'] for x in ('x', 'seed=x', 'a=b,c')),
    ['--workdir=s'],
  ],
  'quickstart': [
    *each('workdir', ('text', 'text/q', 'a*b')),
    *each('seed', ('x', '1.5')),
    *each('method', ('', 'x', 'grpo@x'), '--workdir=q'),
    *([f'--set={x}', '--workdir=q'] for x in ('x', 'seed=x', 'a=b')),
    *each('seed', ('99999999999999999999',), '--workdir=q'),
    ['--workdir=q', f'--set=rollout.num_prompts={HUGE[0]}'],
  ],
  'quickstart_llm': [
    *each('workdir', ('text', 'text/q', 'a*b', ''), '--model=model'),
    *each('model', ('nowhere', 'folder', 'text', 'broken'), '--workdir=q'),
    *each('model', ('empty.gguf', 'text.gguf'), '--workdir=q'),
    *each('method', ('', 'x', 'grpo@x'), '--workdir=q', '--model=model'),
    *(
      [f'--set={x}', '--workdir=q', '--model=model']
      for x in ('x', 'seed=x', 'a=b', f'rollout.group_size={HUGE[0]}')
    ),
  ],
  'tools.influence': [
    *each('config', PATHS),
    *each('method', ('', 'x', 'grpo@x'), BANDIT),
    *each('iterations', ('-1', '0', 'x'), BANDIT),
    *([f'--set={text}', BANDIT] for text in (*SETS[::9], *TOO_LARGE[::5])),
  ],
  'tools.prompt_information': [
    *each('checkpoint', PATHS),
    *each('checkpoint', PATHS, '--config=bandit'),
    *each('config', PATHS, '--checkpoint=model'),
    *each(
      'num_prompts num_samples batch_prompts',
      ('0', '-1', 'x', HUGE[0]),
      '--checkpoint=model',
      BANDIT,
    ),
    *each('num_samples', HUGE, '--checkpoint=model', BANDIT),
    *each('split', ('dev', ''), '--checkpoint=model', BANDIT),
    *each('step', ('7', '-1', 'x'), '--checkpoint=model', BANDIT),
    *each('seed', ('x', '9' * 20), '--checkpoint=model', BANDIT),
    ['--checkpoint=model', BANDIT, '--until='],
    ['--checkpoint=model', BANDIT, '--all_steps'],
  ],
  'benchmark': [
    *each('stage', ('x', '')),
    *each('preset', ('x', '')),
    *each(
      'num_prompts group_size prompt_tokens repeats',
      ('0', '-1', 'x', 'nan', HUGE[0]),
    ),
    *each('mean_length', ('-1', 'nan', 'x')),
    *each('num_prompts', HUGE, '--stage=pairs', '--group_size=2'),
    *each('new_tokens', HUGE),
  ],
}


@pytest.fixture(scope='module')
def place(tmp_path_factory):
  """A folder with files of every kind, and a model."""
  place = tmp_path_factory.mktemp('place')
  (place / 'folder').mkdir()
  (place / 'folder/file').write_text('of the user')
  (place / 'text').write_text('text')
  (place / 'text.gguf').write_text('text')
  (place / 'empty.gguf').write_text('')
  (place / 'broken').mkdir()
  (place / 'broken/config.json').write_text('{')
  (place / 'empty.jsonl').write_text('')
  (place / 'binary.jsonl').write_bytes(bytes(range(256)))
  row = {'question': 'q', 'answer': 1}
  (place / 'rows.jsonl').write_text(json.dumps(row) + '\n')
  (place / 'run2').mkdir()
  (place / 'run2/rollouts.jsonl').write_text('{"step": 1}\n')
  pair = {'prompt': '1+1=', 'response': '2'}
  (place / 'pairs.jsonl').write_text(json.dumps(pair) + '\n')
  (place / 'run1').mkdir()
  (place / 'run1/metrics.jsonl').write_text('{"step": 1, "reward/mean": 1}\n')
  script = (
    'import jax, sys; from configs.worlds import bandit;'
    'from rl_jax.models.files import model_dir;'
    'from rl_jax.models import params; import dataclasses;'
    'from rl_jax.models.tokenizer import ByteTokenizer;'
    'cfg = dataclasses.replace(bandit.get_config(None).model.config,'
    ' vocab_size=ByteTokenizer().vocab_size);'
    'model_dir.save_model("model", cfg,'
    ' params.init_params(cfg, jax.random.key(0)), ByteTokenizer())'
  )
  done = subprocess.run(
    [sys.executable, '-c', script],
    cwd=place,
    env=environment(),
    capture_output=True,
    text=True,
  )
  assert done.returncode == 0, done.stderr
  return place


def environment():
  path = os.pathsep.join([str(ROOT), os.environ.get('PYTHONPATH', '')])
  return {**os.environ, 'PYTHONPATH': path, 'JAX_PLATFORMS': 'cpu'}


@pytest.fixture
def outcomes(place, answers_of):
  """(binary, commands) -> [command, and its answer] of each.

  Every command has its own work directory.
  """
  own = ('--workdir=run', '--out=out')

  def outcomes(name, commands):
    commands = [
      [f'{x}{i}' if x in own else x for x in command]
      for i, command in enumerate(commands)
    ]
    found = answers_of(place, {name: commands})[name]
    return [[c, *f] for c, f in zip(commands, found, strict=True)]

  return outcomes


@pytest.mark.slow
@pytest.mark.parametrize('name', sorted(WRONG))
def test_one_line_for_every_wrong_flag(outcomes, name):
  """Exit code 1 (flags) or 2, a line that says why, nothing raised."""
  wrong = []
  for command, code, text, raised in outcomes(name, WRONG[name]):
    if raised and raised.startswith('UsageError: '):
      continue  # absl prints it
    good = raised is None and code in (1, 2) and 'Traceback' not in text
    if code == 2:
      good = good and len(text.strip().splitlines()) == 1
    if not good:
      wrong.append((command, code, text[-300:], raised))
  assert not wrong, '\n'.join(map(str, wrong))


def test_the_program_sees_what_is_right(outcomes):
  """Else everything that is refused here would prove nothing."""
  right = [[BANDIT, '--workdir=fine', '--print_config'], [BANDIT]]
  (_, code, text, raised), (_, wrong, _, _) = outcomes('train', right)
  assert (code, raised, wrong != 0) == (0, None, True)
  assert 'ExperimentConfig' in text
