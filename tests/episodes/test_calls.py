"""The queue of calls: oldest first, any order of answers."""

from rl_jax.episodes import calls


def _request(serial, sample=0, turn=0, kind='step'):
  return calls.Request(serial, sample, turn, kind)


def _drained(queue):
  found = []
  while answers := queue.poll(None):
    found += answers
  return found


def test_delays_change_the_order_of_answers_only(delayed_calls):
  """Every seed has the same answers."""
  orders = set()
  for seed in range(8):
    queue = delayed_calls.DelayedCalls(lambda r: ('ok', r.key), seed)
    for serial in range(4):
      queue.submit(_request(serial))
    answers = _drained(queue)
    assert {one.request.key: one.reply for one in answers} == {
      _request(n).key: _request(n).key for n in range(4)
    }
    orders.add(tuple(one.request.serial for one in answers))
  assert len(orders) > 1


def test_a_limit_makes_the_oldest_first(delayed_calls):
  queue = delayed_calls.DelayedCalls(lambda r: ('ok', r.serial), most=1)
  for serial in (9, 3, 1, 2):
    queue.submit(_request(serial))
  assert [one.reply for one in _drained(queue)] == [9, 1, 2, 3]
