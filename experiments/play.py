"""Plays one episode in the terminal, with a person or a policy.

python -m experiments.play --config=keydoor
python -m experiments.play --checkpoint=runs/keydoor --index=3
python -m experiments.play --config=my_config.py --set=task.size=5

--task is a configuration (configs/NAME.py, NAME or a file of yours), whose task
is played; --checkpoint a work directory of `train`, whose newest policy plays
the task of its run. A person writes an action a line; an empty line is an empty
action, end of input (Ctrl-D) ends the episode. Of a game a person plays all
players in turn, a policy itself. A task without episodes has one
turn. Shown are observations, actions with the tokens they are made of, the
rewards of each turn and their weighted sum; for a person these tokens are
characters, or bytes where the task has no alphabet.
"""

from collections.abc import Iterable, Iterator, Sequence
import contextlib
import dataclasses
from typing import Any

from absl import app, flags
import jax

from experiments.flags import configuration, fields
from rl_jax.config import ExperimentConfig, evaluated_tokens, validate
from rl_jax.decoding.engine import EngineConfig, make_engine
from rl_jax.decoding.stop import make_stop
from rl_jax.episodes.episode_prompts import EpisodePrompts
from rl_jax.episodes.slot_runner import SlotRunner
from rl_jax.models.tokenizer import ByteTokenizer
from rl_jax.runs import assembly, directory
from rl_jax.runs import policy as policy_lib
from rl_jax.runs.evaluation import sampling_of
from rl_jax.runtime import mesh as mesh_lib
from rl_jax.tasks.base import SPLITS
from rl_jax.tasks.environments import several
from rl_jax.tasks.environments.base import is_environment, opened, seed_of
from rl_jax.tasks.templates import render_prompt
from rl_jax.tasks.wrapped import Wrapped
from rl_jax.types import POLICY
from rl_jax.verification.sessions import Request, SessionPool

_CONFIG = flags.DEFINE_string(
  'config', None, 'Configuration; its task is played.'
)
flags.DEFINE_alias('task', 'config')
_CHECKPOINT = flags.DEFINE_string(
  'checkpoint', None, 'Work directory of a run.'
)
_SPLIT = flags.DEFINE_enum('split', 'test', SPLITS, 'Of the task.')
_INDEX = flags.DEFINE_integer('index', 0, 'Example of the split.', 0)
_SEED = flags.DEFINE_integer(
  'seed',
  None,
  'Of samples; default: greedy.',
  lower_bound=-(2**63),
  upper_bound=2**63 - 1,
)
_SET = flags.DEFINE_multi_string('set', [], 'PATH=LITERAL of any field.')


@dataclasses.dataclass(frozen=True)
class Alone(Wrapped):
  """A task as its episodes, also one of single responses."""

  task: Any

  def make(self, example: Any) -> Any:
    """An episode."""
    return several.make(self.task, example)


def by_hand(
  task: Any, example: Any, actions: Iterator[str], tokenizer: Any
) -> Iterable[str]:
  """Lines of an episode whose actions are given as they are asked for."""
  said, taken, total = [], [], {}
  with SessionPool(Alone(task)) as pool:
    while True:
      request = Request((0, 0), example, seed_of(example), tuple(taken))
      (answer,) = pool.ask([request])
      if answer.reply is None:
        yield f'the episode has failed: {answer.error}'
        return
      reply = answer.reply
      if not said:
        chat = several.begins_in_chat(task, example)
        begun = opened(example, reply['observation'], chat)
        for role, one in enumerate((begun, *begun.others)):
          player = f' of player {role}' if begun.others else ''
          yield from [f'prompt{player}:', render_prompt(one, tokenizer)]
      else:
        for player, rewards in _by_player(reply['rewards']):
          value = _weighted(task, rewards)
          total[player] = total.get(player, 0.0) + value
          yield from _outcome(f'{len(taken)}{player}', rewards, value)
        for player, text in _by_player(reply['observation']):
          if text or not player:
            yield f'{player[2:]}: {text}' if player else text
      said.append(reply)
      if reply['done'] or reply['truncated']:
        yield _end('done' if reply['done'] else 'truncated', *total.values())
        return
      if reply['ask']:
        yield f'{reply["ask"]["partner"]} is asked: {reply["ask"]["text"]}'
      for action in actions:
        try:
          ids = tokenizer.encode(action)
        except ValueError as error:  # a policy could not write it
          yield f'  {error}'
          continue
        taken.append(action)
        yield _tokens(tokenizer, ids)
        break
      else:
        yield _end('left', *total.values())
        return


def by_policy(
  config: ExperimentConfig, checkpoint: str, split: str, index: int, seed: Any
) -> Iterable[str]:
  """Lines of an episode of the newest policy of a run."""
  mesh = mesh_lib.make_mesh(mesh_lib.MeshConfig(), jax.devices()[:1])
  jax.set_mesh(mesh)
  model, params, tokenizer = policy_lib.load_checkpoint(checkpoint, mesh, None)
  rollout, stop = config.rollout, make_stop(tokenizer, config.rollout.stop)
  sampling = sampling_of(config).replace(
    eos_ids=stop.ids, stop_SV=stop.table, greedy=seed is None
  )
  engine = make_engine(
    model,
    sampling,
    EngineConfig(
      group_size=1,
      max_response_tokens=evaluated_tokens(config),
      turns=rollout.turns,
    ),
    mesh,
  )
  with contextlib.closing(
    assembly.make_runner(config, None, tokenizer, mesh)
  ) as episodes:
    assert isinstance(episodes, SlotRunner)
    prompts = EpisodePrompts(
      config.task,
      split,
      tokenizer,
      rollout.max_prompt_tokens,
      begin=episodes.open,
    )
    examples, *arrays = prompts.batch([index])
    if examples[0].failure:
      raise ValueError(f'the episode does not begin: {examples[0].failure}')
    traj = engine.start(*arrays, index, 0)
    key = assembly.run_key(seed or 0, mesh)
    traj = jax.device_get(episodes.play(engine, params, traj, key, examples))
    shown = episodes.shown()(0)
  yield from ['prompt:', render_prompt(examples[0], tokenizer)]
  total, own = 0.0, traj.kind_BT[0] == POLICY
  for k, turn in enumerate(shown['turns']):
    if turn.get('forgets'):
      yield '(a new context after the prompt)'
    if k:
      yield turn['observation']
    ids = traj.response_BT[0][own & (traj.turn_BT[0] == k)]
    yield f'> {turn["action"]}'
    yield _tokens(tokenizer, ids.tolist())
    if 'rewards' in turn:
      value = _weighted(config.task, turn['rewards'])
      total += value
      yield from _outcome(k + 1, turn['rewards'], value)
  yield shown['last_observation']
  yield _end(shown['end'], total)


def _by_player(value):
  """(', player N', its part) of a game, ('', value) else."""
  if not isinstance(value, list):
    return [('', value)]
  return [(f', player {role}', part) for role, part in enumerate(value)]


def _weighted(task, rewards):
  return sum(w * rewards.get(k, 0.0) for k, w in task.reward_weights.items())


def _outcome(turn, rewards, value):
  parts = ', '.join(f'{name} {x:g}' for name, x in rewards.items())
  yield f'  turn {turn}: reward {value:g} ({parts or "no component"})'


def _tokens(tokenizer, ids):
  return f'  {len(ids)} tokens: {list(map(int, ids))}'


def _end(how, *totals):
  return f'end: {how}, reward {", ".join(f"{x:g}" for x in totals or (0.0,))}'


def _asked() -> Iterator[str]:
  """Returns what a person writes."""
  while True:
    try:
      yield input('> ')
    except EOFError:
      return


def check_index(task: Any) -> None:
  """Raises UsageError unless the split has the example of the flags."""
  count = task.num_prompts(_SPLIT.value)
  if _INDEX.value >= count:
    raise app.UsageError(
      f'--index={_INDEX.value} of --split={_SPLIT.value}, which has {count} '
      'examples'
    )


def main(argv: Sequence[str]) -> None:
  """Plays and prints."""
  del argv
  if (_CONFIG.value is None) == (_CHECKPOINT.value is None):
    raise app.UsageError('give --config or --checkpoint, one of them')
  if _CHECKPOINT.value is not None:
    config = directory.saved_config(_CHECKPOINT.value)
    config = configuration.changed(config, fields.once(_SET.value))
    if not is_environment(config.task):
      raise app.UsageError(
        f'--checkpoint: {type(config.task).__name__} has no episodes; '
        'experiments.evaluate shows responses'
      )
    validate(config)
    check_index(config.task)
    lines = by_policy(
      config, _CHECKPOINT.value, _SPLIT.value, _INDEX.value, _SEED.value
    )
  else:
    method = configuration.load_method('reinforce')
    config = configuration.load_config(_CONFIG.value or '', method)
    config = configuration.changed(config, fields.once(_SET.value))
    check_index(config.task)
    example = config.task.example(_SPLIT.value, _INDEX.value)
    tokenizer = ByteTokenizer()
    if config.task.alphabet is not None:
      tokenizer = policy_lib.task_tokenizer(config.task)
    lines = by_hand(config.task, example, _asked(), tokenizer)
  for line in lines:
    print(line, flush=True)


if __name__ == '__main__':
  configuration.run(main)
