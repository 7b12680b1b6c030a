"""Held-out pairs of instructions and responses, as rows for reward models.

python -m experiments.papers.worlds.instruction_rows --pairs=responses
  --out=pairs.jsonl

Writes {prompt, chosen, rejected} of `InstructionPairs`: pairs of responses to
the same instructions, or of instructions for the same response.
"""

import json

from absl import flags

from experiments.flags import configuration, outputs
from rl_jax.worlds import InstructionPairs

SPLITS = {'responses': 'validation', 'prompts': 'test'}
_PAIRS = flags.DEFINE_enum('pairs', 'responses', tuple(SPLITS), 'What differs.')
_OUT = flags.DEFINE_string('out', None, 'JSONL file.', required=True)


def rows(pairs: str) -> list[dict[str, str]]:
  """Every pair of the split."""
  task, split = InstructionPairs(), SPLITS[pairs]
  found = []
  for index in range(task.num_prompts(split)):
    example = task.example(split, index)
    chosen, rejected = task.recorded(example)
    found.append(
      {
        'prompt': example.prompt,
        'chosen': chosen.text,
        'rejected': rejected.text,
      }
    )
  return found


def main(argv):
  """Writes the file and prints the number of its rows."""
  del argv
  outputs.check_file('out', _OUT.value)
  found = rows(_PAIRS.value)
  outputs.write_rows(_OUT.value, found)
  print(json.dumps({'out': _OUT.value, 'rows': len(found)}))


if __name__ == '__main__':
  configuration.run(main)
