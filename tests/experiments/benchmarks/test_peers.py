"""The table that compare_peers.sh prints."""

import json

from experiments.benchmarks.peers import read, table


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
