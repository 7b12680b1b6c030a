"""Rows of preferences, responses or texts from what runs have sampled.

python -m experiments.rollout_rows --workdir=runs/grpo --form=pair
  --out=pairs.jsonl

Reads rollouts.jsonl, also of runs on recorded rows; it has the first
guards.log_rollouts prompts of every iteration: rollout.num_prompts are all.
Each row is written once, as tasks.PreferenceRows reads it:
  pair      {prompt, chosen, rejected}: the samples of a prompt in one iteration
            with the largest and the smallest reward, each the first of its
            kind; --min_reward <= the largest, and the smallest is below it.
            --shorter: of the right samples the shortest against the longest
            wrong one, if it has fewer characters
  label     {prompt, completion, label: reward >= --min_reward}
  scores    {prompt, responses, scores: rewards}, if all samples were judged
  response  {prompt, completion} of every sample with reward >= --min_reward
  text      {text}: prompt and response of these samples as one text
A response is written with the stop text that ended it. Samples that could not
be judged, or that the limit of tokens cut, are left out. Episodes of several
turns are an error: their text has what the environment said. Prompts are those
of the log: of conversations the user's last message, with --chat as
conversations.
"""

import json

from absl import flags

from experiments.flags import configuration, outputs, places
from experiments.pipelines.rows import FORMS, read, rows

_WORKDIR = places.define_workdirs('A work directory of `train`')
_OUT = flags.DEFINE_string('out', None, 'JSONL file.', required=True)
_FORM = flags.DEFINE_enum('form', 'pair', FORMS, 'What a row is.')
_LEAST = flags.DEFINE_float(
  'min_reward', 1.0, 'Of samples that are right.', upper_bound=1e30
)
_LAST = flags.DEFINE_integer(
  'last', None, 'Only so many last iterations of a run.', lower_bound=1
)
_SHORTER = flags.DEFINE_bool(
  'shorter', False, 'Pairs of a right response and a longer wrong one.'
)
_CHAT = flags.DEFINE_bool('chat', False, 'Texts are turns of a conversation.')


def main(argv):
  """Writes the file and prints the number of its rows."""
  del argv
  if _CHAT.value and _FORM.value == 'text':
    raise ValueError('--chat with --form=text: a text has no turns')
  if _SHORTER.value and _FORM.value != 'pair':
    raise ValueError(f'--shorter with --form={_FORM.value}: it is for pairs')
  workdirs = places.workdirs(_WORKDIR.value)
  if not workdirs:
    raise ValueError('--workdir is missing')
  outputs.check_file('out', _OUT.value)
  found = {}  # in order, each once
  for workdir in workdirs:
    samples = read(workdir, _LAST.value)
    for row in rows(
      samples, _FORM.value, _LEAST.value, _CHAT.value, _SHORTER.value
    ):
      found[json.dumps(row)] = row
  if not found:
    raise ValueError(
      f'--workdir={",".join(workdirs)}: no rows of --form='
      f'{_FORM.value} with --min_reward={_LEAST.value}'
    )
  outputs.write_rows(_OUT.value, found.values())
  print(json.dumps({'out': _OUT.value, 'rows': len(found)}))


if __name__ == '__main__':
  configuration.run(main)
