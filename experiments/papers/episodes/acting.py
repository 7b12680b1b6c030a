"""Measures the influence of methods in the worlds of episodes.

  python -m experiments.papers.episodes.acting
    --out=experiments/papers/episodes/influence.jsonl

Of each method in the world of its claim, by `experiments.tools.influence`:
means over ITERATIONS of its own run, seed 0, against the method that it
changes. Methods that have a line are left out. README.md has the commands of
the starts.
"""

import os

from absl import flags

from experiments.flags import configuration
from experiments.papers.episodes import sweep
from experiments.papers.worlds import influences
from rl_jax.records import metrics

ITERATIONS = 4
# World -> methods whose influence is measured.
WORLDS = {
  'dense': ('gigpo', 'turn_ppo', 'salt'),
  'dense_later': ('empg', 'epo'),
  'dense_last': ('ppdpp', 'poad'),
  'dense_more': ('starpo', 'expert_iteration', 'turn_rloo'),
  'far': ('gigpo', 'salt'),
  'told': ('oni',),
  'tools': ('otc', 'router_r1', 'duration_ppo'),
  'tools_fast': ('llds',),
  'tools_early': ('aspo',),
  'triggers': ('rlprompt',),
  'lookup_later': ('rex_rag',),
  'lookup_fast': ('llds',),
  'reflections': ('retroformer',),
  'recorded_20': ('filtered_bc', 'ilql'),
  'kuhn': ('spiral',),
  'frozen': ('grpo', 'turn_ppo'),
  # From their own starts.
  'planned_1_walks': ('hiper',),
  'planned_3_walks': ('hiper',),
  'haggling': ('ppdpp',),
  'haggling_scores': ('epo',),
  'hints': ('nlpo',),
  'two_step': ('grpo',),
  'moves_sft': ('grpo',),
  'callers': ('otc',),
  'maze_start': ('turn_ppo', 'filtered_bc'),
  'slow_phrase': ('poad',),
  'credited_phrase': ('poad@turn_rewards',),
  'forms_3_selected': ('turn_rloo',),
  'rooms_credited': ('grpo', 'rloo', 'ppo', 'ppo@turn_rewards'),
  'searched_fast': ('llds',),
  'sums_tool': ('expert_iteration', 'grpo'),
  'taxi': ('turn_ppo', 'filtered_bc'),
  'babyai_renamed': ('grpo',),
}


def main(argv):
  """Appends what is missing."""
  del argv
  path = flags.FLAGS.out
  lines = metrics.read_jsonl(path) if os.path.exists(path) else []
  known = {(line['world'], line['method']) for line in lines}
  for world, names in WORLDS.items():
    for name in names:
      if (world, name) not in known:
        settings = sweep.WORLDS[world].settings()
        setting = next(x for x in settings if x['method'] == name)
        line = influences.of_a_run(world, setting, ITERATIONS)
        influences.append(path, line)


if __name__ == '__main__':
  flags.DEFINE_string('out', None, 'JSONL to write.', required=True)
  configuration.run(main)
