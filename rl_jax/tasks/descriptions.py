"""What method pieces read of a response that is one plain answer, or none.

Components of weight 0 (see `extras.KEYS`). A task without modes, formats, tools
and lists of candidates has one of each.
"""

from typing import Any

# 'format' is a cost or a reward of its own, no extra.
MALFORMED = {
  'cluster_id': -1.0,  # has no answer
  'first_call': -1.0,
  'forced': 0.0,
  'format': 0.0,
  'format_id': 0.0,
  'hit_rank': 0.0,
  'mode': 1.0,
  'num_answers': -1.0,
}


def single_answer(cluster_id: Any, outcome: Any) -> dict[str, Any]:
  """Components of a well-formed response; numbers or arrays [B].

  It is in the instant mode, the one format, and the only candidate.
  """
  return {
    'cluster_id': cluster_id,
    'first_call': -1.0,
    'forced': 0.0,
    'format': 1.0,
    'format_id': 1.0,
    'hit_rank': outcome,
    'mode': 0.0,
    'num_answers': 1.0,
  }
