"""Prints what policies give pairs of responses that no training has seen.

  python -m experiments.papers.word_problems.held_out_pairs
    --data=data/own_pairs.jsonl --held_out=32
    --policies=smollm2.gguf,runs/dpo_0,runs/simpo_0

The last --held_out rows of the file are judged. A JSON line a policy: mean
log-probs of the chosen and of the rejected response in nats, and how often the
chosen one has the larger mean log-prob of a token.
"""

import json

from absl import flags

from experiments.flags import configuration
from experiments.papers.preferences import excerpt

_DATA = flags.DEFINE_string('data', None, 'Pairs in JSONL.', required=True)
_HELD_OUT = flags.DEFINE_integer(
  'held_out', 32, 'Rows at the end.', lower_bound=1
)
_POLICIES = flags.DEFINE_list('policies', None, 'Of one shape.', required=True)


def settings(data: str, held_out: int, model: str) -> list[str]:
  """The differences from configs/worlds/preferences.py."""
  return [
    f'task=PreferenceRows(path={data!r}, num_validation={held_out})',
    f'model.path={model!r}',
    'rollout.max_prompt_tokens=192',
    'rollout.max_response_tokens=14',
    'rollout.num_prompts=8',
    'rollout.logged_prompts=8',
    f'evaluation.num_prompts={held_out}',
  ]


def main(argv):
  """A line a policy."""
  del argv
  sets = settings(_DATA.value, _HELD_OUT.value, _POLICIES.value[0])
  judge = excerpt.Judge(
    configuration.build('preferences', excerpt.METHOD, sets)
  )
  for policy in _POLICIES.value:
    print(json.dumps({'policy': policy, **judge(policy)}), flush=True)
  judge.close()


if __name__ == '__main__':
  configuration.run(main)
