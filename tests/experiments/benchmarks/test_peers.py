"""The table that compare_peers.sh prints."""

import json

from experiments.benchmarks.peers import read, table, table_in_turn


def line(generate, update, step):
  return json.dumps(
    {
      'stage': 'step',
      'seconds_median': step,
      'stage_seconds': {'generate': generate, 'update': update},
      'peak_memory_gb': 0.5,
      'compile_seconds': {'generate': 1.0, 'update': 2.0},
    }
  )


def test_peers_need_so_many_times_our_seconds():
  """Medians over rounds: ours 2, 4 and 6 s, the peers' 6, 4 and 12 s; compiling
  takes 1 + 2 s, and 1.5 + 4.5 s."""
  lines = [
    line(*x) for x in ((1.0, 4.0, 6.0), (2.0, 3.0, 5.0), (9.0, 5.0, 7.0))
  ]
  peer = {'bench': 'trl_cpu', 'peak_rss_mb': 3980.0}
  peer |= {'generate_tok_per_s': {'median_s': 6.0}}
  peer |= {'grpo_update_tok_per_s': {'median_s': 4.0}}
  lines.append(json.dumps(peer | {'grpotrainer_steps_per_s': {'median_s': 12}}))
  peer = {'bench': 'tunix', 'peak_rss_mb': 999.0}
  peer |= {'sampling': {'median_s': 6.0, 'compile_s': 1.5}}
  peer |= {'update': {'median_s': 8.0, 'compile_s': 4.5}}
  lines.append(json.dumps(peer))
  rows = table(read(lines)).splitlines()[2:]
  assert rows == [
    '| rl_jax | 2.00 s | 4.00 s | 6.00 s | 3.00 s | 0.50 GB |',
    '| TRL | 6.00 s (3.00x) | 4.00 s (1.00x) | 12.00 s (2.00x) | - | 3.98 GB |',
    '| Tunix | 6.00 s (3.00x) | 8.00 s (2.00x) | - | 6.00 s (2.00x) '
    '| 1.00 GB |',
  ]


def test_rounds_in_turn():
  """CPU: ratios 4/2, 9/3 and 8/8; wall: 6/3, 11/4 and 10/9."""
  rows = []
  for ours, theirs in ((2.0, 4.0), (3.0, 9.0), (8.0, 8.0)):
    rows += [pairs_line(ours), pairs_line(theirs, system='TRL')]
  assert table_in_turn(rows).splitlines()[2:] == [
    '| wall s | 4.00 | 10.00 | 2.00 | 1.11 to 2.75 |',
    '| CPU s | 3.00 | 8.00 | 2.00 | 1.00 to 3.00 |',
    '| memory, GB | 1.50 | 1.50 | 1.00 | 1.00 to 1.00 |',
  ]


def pairs_line(seconds, **system):
  return {
    'stage': 'pairs',
    'seconds_median': seconds + (2 if system else 1),
    'cpu_seconds_median': seconds,
    'peak_memory_gb': 1.5,
    **system,
  }


def test_turns_are_compared_by_their_number():
  """JSON has names for numbers; other numbers of turns have no peer."""
  clocks = ('wall_seconds_by_turns', 'seconds_by_turns')
  row = {'stage': 'turns', 'peak_memory_gb': 1.0}
  ours = row | {k: {'2': 1.0, '8': 2.0, '16': 4.0} for k in clocks}
  theirs = row | {k: {'8': 6.0, '16': 32.0} for k in clocks}
  found = table_in_turn([ours, theirs | {'system': 'TRL'}]).splitlines()
  assert found[2] == '| wall s, 8 turns | 2.00 | 6.00 | 3.00 | 3.00 to 3.00 |'
  assert found[5] == '| CPU s, 16 turns | 4.00 | 32.00 | 8.00 | 8.00 to 8.00 |'
