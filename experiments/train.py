"""Trains a policy by reinforcement learning, or continues the run in workdir.

python -m experiments.train --config=configs/worlds/arithmetic.py --method=grpo
  --set=rollout.group_size=16 --set=method.losses.PPOClip.clip_high=0.28
  --workdir=runs/grpo

--config and --method are names or files of yours; --config also takes the
experiment.json of a run, or what --print_config printed.

--set=PATH=LITERAL changes one field (null removes an optional piece);
--add=PATH=Class(field=literal) appends a piece, for example
--add='method.weights=ClipCovDrop(fraction=1e-3)'. Run it again with the same
arguments to continue after an interruption; --allow_change=PATH lets the rest
of the run have another value of a field. --profile=10:13 traces these
iterations into WORKDIR/profile (TensorBoard or Perfetto show it), and
--timeline=10:13 writes what device, slots and calls of their episodes do into
WORKDIR/timeline.json (chrome://tracing or Perfetto).
"""

from absl import app, flags, logging

from experiments.flags import configuration
from experiments.flags import processes as process_flags
from experiments.reports import typed
import rl_jax
from rl_jax import serialization
from rl_jax.runs import callbacks, directory
from rl_jax.runtime import processes, profiling

_WORKDIR = flags.DEFINE_string(
  'workdir', None, 'Directory for checkpoints and logs.'
)
_PRINT = flags.DEFINE_bool(
  'print_config', False, 'Print the resolved configuration and exit.'
)
_PROFILE = flags.DEFINE_string(
  'profile', None, 'FIRST:LAST: iterations to trace into WORKDIR/profile.'
)
_TIMELINE = flags.DEFINE_string(
  'timeline',
  None,
  'FIRST:LAST: iterations whose episodes are drawn in WORKDIR/timeline.json.',
)
_TAKE_OVER = flags.DEFINE_bool(
  'take_over',
  False,
  'Write where the lock names another run: it has ended, or will write nothing '
  'more.',
)
_ALLOW_CHANGE = flags.DEFINE_multi_string(
  'allow_change',
  [],
  'PATH of a field that the rest of a run has otherwise, as '
  'optimizer.learning_rate; recorded; may be repeated.',
)
_CALLBACK = flags.DEFINE_multi_string(
  'callback',
  [],
  'PATH.py:CLASS or MODULE:CLASS: own code, see rl_jax/runs/callbacks.py; may '
  'be repeated.',
)
configuration.define_flags()
process_flags.define_flags()


def main(argv):
  """Resolves the configuration, checks it, trains."""
  if len(argv) > 1:
    raise app.UsageError(f'unexpected arguments: {argv[1:]}')
  config = configuration.from_flags()
  if _PRINT.value:
    serialization.check(config)
    print(serialization.to_json(config), end='')
    return
  if _WORKDIR.value is None:
    raise ValueError('--workdir is missing: the directory of the run')
  process_flags.start()
  window, drawn, done = None, None, directory.iterations_done(_WORKDIR.value)
  if done > config.iterations:
    logging.warning(
      'nothing to do: %d iterations are done, and iterations = %d',
      done,
      config.iterations,
    )
  if _PROFILE.value is not None:
    window = profiling.parse_window(_PROFILE.value, done, config.iterations)
  if _TIMELINE.value is not None:
    drawn = profiling.parse_window(
      _TIMELINE.value, done, config.iterations, 'timeline'
    )
  values = flags.FLAGS
  words = typed.Typed(values.config, values.method, values.set, values.add)
  own = [callbacks.load(text) for text in _CALLBACK.value]
  row = rl_jax.train(
    config,
    _WORKDIR.value,
    take_over=_TAKE_OVER.value,
    allow_change=_ALLOW_CHANGE.value,
    callbacks=[words, *own],
    profile=window,
    timeline=drawn,
  )
  if not processes.is_main():
    return
  accuracy = row.get('evaluation/pass_at_1')
  unjudged = int(row.get('rollout/reward_errors') or 0)
  print(
    f'done: reward {row.get("reward/mean", float("nan")):.3f}'
    + ('' if accuracy is None else f', greedy accuracy {accuracy:.3f}')
    + (f', {unjudged} last samples not judged' if unjudged else '')
    + f', files in {_WORKDIR.value}'
  )


if __name__ == '__main__':
  configuration.run(main)
