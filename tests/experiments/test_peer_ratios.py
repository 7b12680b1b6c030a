"""The table that compare_peers.sh prints."""

import json

from experiments.peer_ratios import read, table


def line(stage, seconds):
  return json.dumps(
    {
      'stage': stage,
      'seconds_median': seconds,
      'peak_memory_gb': 0.5,
      'compile_seconds': {'generate': 1.0},
    }
  )


def test_peers_need_so_many_times_our_seconds():
  """Medians over rounds: ours 2, 4 and 6 s, the peer's 6, 4 and 12 s."""
  lines = [line('generate', x) for x in (1.0, 2.0, 9.0)]
  lines += [line('update', 4.0), line('step', 6.0)]
  peer = {'bench': 'trl_cpu', 'peak_rss_mb': 3980.0}
  peer |= {'generate_tok_per_s': {'median_s': 6.0}}
  peer |= {'grpo_update_tok_per_s': {'median_s': 4.0}}
  lines.append(json.dumps(peer | {'grpotrainer_steps_per_s': {'median_s': 12}}))
  rows = table(read(lines)).splitlines()[2:]
  assert rows == [
    '| rl_jax | 2.00 s | 4.00 s | 6.00 s | 0.50 GB |',
    '| TRL | 6.00 s (3.00x) | 4.00 s (1.00x) | 12.00 s (2.00x) | 3.98 GB |',
  ]
