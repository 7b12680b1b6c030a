"""How the cost of a rollout and of an update grows along four axes.

  for axis in group_size prompt_tokens new_tokens vocab_size; do
    python -m experiments.benchmarks.scaling --axis=$axis --out=scaling.jsonl
  done
  python -m experiments.benchmarks.scaling --figure=scaling.png \
    --out=scaling.jsonl

One JSON line a point, and points that the file has are not repeated: the least
seconds of the repeats (on a CPU of its time, so that others who use the machine
hardly count), and the model's FLOP. The figure fits log(seconds) and log(FLOP)
over the same points: the slope of the second is the exponent that theory
predicts, the first the measured one.
"""

import json

from absl import app, flags

from experiments.benchmarks import scaling_points as points

_AXIS = flags.DEFINE_enum('axis', None, list(points.AXES), 'What to vary.')
_REPEATS = flags.DEFINE_integer('repeats', 5, 'Timed calls of each point.')
_OUT = flags.DEFINE_string('out', None, 'File of the lines.', required=True)
_FIGURE = flags.DEFINE_string('figure', None, 'Draws the lines into a PNG.')


def main(argv):
  """Measures one axis, or draws what was measured."""
  del argv
  if _AXIS.value:
    done = {(r['axis'], r['value']) for r in points.read(_OUT.value)}
    for value in points.AXES[_AXIS.value]:
      if (_AXIS.value, value) in done:
        continue
      line = json.dumps(points.point(_AXIS.value, value, _REPEATS.value))
      print(line, flush=True)
      with open(_OUT.value, 'a', encoding='utf-8') as file:
        file.write(line + '\n')
  if _FIGURE.value:
    points.draw(points.read(_OUT.value), _FIGURE.value)


if __name__ == '__main__':
  app.run(main)
