"""A failed reward call affects only its own sample."""

import logging
import os
import pathlib
import signal
import subprocess
import sys
import time

import pytest

from rl_jax.tasks import Example, TaskTraits
from rl_jax.verification import messages, processes
from rl_jax.verification.pool import VerifierPool
from rl_jax.worlds import Arithmetic, KeyDoor

SOON = 20.0  # seconds; an upper bound for waits, never an expectation


@pytest.fixture(name='bad')
def _bad(monkeypatch):
  """The module of misbehaving tasks, importable by workers as well."""
  monkeypatch.syspath_prepend(os.path.dirname(os.path.dirname(__file__)))
  import misbehaving_tasks

  return misbehaving_tasks


def _examples(count):
  return [Example(prompt='', answer=str(i), id=i) for i in range(count)]


def _is_running(pid):
  try:
    with open(f'/proc/{pid}/stat') as f:
      return f.read().rpartition(')')[2].split()[0] != 'Z'
  except (FileNotFoundError, ProcessLookupError):
    return False


def _wait_until(condition):
  end = time.monotonic() + SOON
  while not condition():
    assert time.monotonic() < end, 'waited too long'
    time.sleep(0.02)


@pytest.mark.parametrize('num_workers', [0, 2])
def test_outcomes_keep_the_order_of_the_samples(bad, num_workers):
  responses = [str(i) if i % 3 else 'x' * i for i in range(200)]
  with VerifierPool(bad.Misbehaving(), num_workers) as pool:
    outcomes = pool.reward(_examples(200), responses)
  for i, outcome in enumerate(outcomes):
    assert outcome.error is None
    assert outcome.components == {
      'outcome': float(i % 3 > 0),
      'length': float(len(responses[i])),
    }


@pytest.mark.parametrize('num_workers', [0, 2])
def test_bad_values_affect_only_their_sample(bad, num_workers):
  """Every second sample is good; the others name their error."""
  cases = [
    ('raise_error', 'error', 'a bug in the reward function'),
    ('leave', 'error', 'SystemExit'),
    ('nan', 'invalid', 'nan'),
    ('infinite', 'invalid', 'length'),
    ('huge', 'invalid', '1e+300, not in [-1e+12, 1e+12]'),
    ('digits', 'invalid', '-inf, not in [-1e+12, 1e+12]'),
    ('number', 'invalid', 'float'),
    ('text', 'invalid', 'str'),
    ('vector', 'invalid', 'ndarray'),
    ('nameless', 'invalid', 'outcome'),
  ]
  responses = [text for case in cases for text in (case[0], 'good')]
  with VerifierPool(bad.Misbehaving(), num_workers) as pool:
    outcomes = pool.reward(_examples(len(responses)), responses)
    assert [o.kind for o in outcomes[1::2]] == ['ok'] * len(cases)
    for (_, kind, words), outcome in zip(cases, outcomes[::2], strict=True):
      assert outcome.kind == kind
      assert outcome.components is None
      assert words in outcome.error
    assert pool.counts() == {
      'ok': 10,
      'error': 2,
      'invalid': 8,
      'timeout': 0,
      'died': 0,
      'stray': 0,
    }


@pytest.mark.parametrize('response', ['hang', 'spin', 'regex'])
def test_a_hanging_call_is_killed_and_other_samples_are_judged(bad, response):
  """One worker, one chunk after the other: the hang sits in mid-chunk."""
  responses = [str(i) for i in range(40)]
  responses[5] = responses[17] = response
  with VerifierPool(bad.Misbehaving(), 1, timeout_seconds=1.0) as pool:
    before = pool.worker_pids()
    outcomes = pool.reward(_examples(40), responses)
    wrong = [i for i, o in enumerate(outcomes) if o.kind != 'ok']
    assert wrong == [5, 17]
    assert {outcomes[i].kind for i in wrong} == {'timeout'}
    assert all(o.components['outcome'] for o in outcomes if o.kind == 'ok')
    assert not _is_running(before[0])
    assert pool.worker_pids() != before
    again = pool.reward(_examples(3), ['0', '1', '2'])
    assert [o.kind for o in again] == ['ok'] * 3
    assert pool.counts() == {
      'ok': 41,
      'error': 0,
      'invalid': 0,
      'timeout': 2,
      'died': 0,
      'stray': 0,
    }


def test_a_timeout_may_count_as_wrong(bad):
  """Zero in every component that the task returns; it is still counted."""
  with VerifierPool(
    bad.Misbehaving(), 1, timeout_seconds=1.0, on_timeout='wrong'
  ) as pool:
    good, late = pool.reward(_examples(2), ['0', 'hang'])
    assert good.components == {'outcome': 1.0, 'length': 1}
    assert late.components == {'outcome': 0.0, 'length': 0.0}
    assert late.kind == 'timeout' and pool.counts()['timeout'] == 1


def test_a_lost_process_may_count_as_wrong(bad):
  """If it ends twice: who is killed by chance is judged by another one."""
  with VerifierPool(bad.Misbehaving(), 1, on_timeout='wrong') as pool:
    good, lost = pool.reward(_examples(2), ['0', 'vanish'])
    assert good.components == {'outcome': 1.0, 'length': 1}
    assert lost.components == {'outcome': 0.0, 'length': 0.0}
    assert lost.kind == 'died' and pool.counts()['died'] == 1
    os.kill(pool.worker_pids()[0], signal.SIGKILL)
    (again,) = pool.reward(_examples(1), ['0'])
    assert again.kind == 'ok'


def test_a_task_whose_reward_may_not_end_needs_workers(bad, monkeypatch):
  traits = TaskTraits(needs_workers=True)
  monkeypatch.setattr(bad.Misbehaving, 'traits', traits)
  with pytest.raises(ValueError, match='verifier.num_workers = 0'):
    VerifierPool(bad.Misbehaving(), 0)


@pytest.mark.parametrize('how', ['spawn', 'daemon'])
def test_descendants_of_a_killed_worker_are_killed(bad, tmp_path, how):
  """Those in its process group, and one that has left it."""
  pid_file = tmp_path / 'pid'
  with VerifierPool(bad.Misbehaving(), 1, timeout_seconds=1.0) as pool:
    (outcome,) = pool.reward(_examples(1), [f'{how} {pid_file}'])
    assert outcome.kind == 'timeout'
    _wait_until(lambda: not _is_running(int(pid_file.read_text())))
    assert pool.reward(_examples(1), ['0'])[0].kind == 'ok'


def test_a_fork_bomb_affects_only_its_sample(bad):
  """32 busy processes, all killed; the pool continues."""
  with VerifierPool(bad.Misbehaving(), 1, timeout_seconds=1.0) as pool:
    outcomes = pool.reward(_examples(3), ['0', 'bomb', '2'])
    nursery = pool._crew._process.pid
    mine = pathlib.Path(f'/proc/{nursery}/task/{nursery}/children')
    assert len(mine.read_text().split()) == 1
  assert [o.kind for o in outcomes] == ['ok', 'timeout', 'ok']


@pytest.mark.filterwarnings('ignore:.*fork')  # JAX and Python warn of forks
@pytest.mark.parametrize('num_workers', [0, 1])
def test_a_call_that_forks_and_returns_twice_shifts_no_outcome(
  bad, num_workers
):
  """Every sample but the first gets the outcome of its own response."""
  responses = ['fork'] + [str(i + i % 3) for i in range(1, 100)]
  with VerifierPool(bad.Misbehaving(), num_workers) as pool:
    for _ in range(2):
      outcomes = pool.reward(_examples(100), responses)
      assert {o.kind for o in outcomes} == {'ok'}
      found = [o.components['outcome'] for o in outcomes[1:]]
      assert found == [float(i % 3 == 0) for i in range(1, 100)]


@pytest.mark.parametrize(
  ('response', 'kind'),
  [
    ('twice', 'stray'),
    ('ahead', 'stray'),
    ('forged', 'died'),
    ('nested', 'died'),
  ],
)
def test_forged_replies_void_their_sample_alone(bad, response, kind):
  responses = [str(i) for i in range(20)]
  responses[3] = responses[11] = response
  responses[4] = responses[12] = 'wrong'
  with VerifierPool(bad.Misbehaving(), 1) as pool:
    outcomes = pool.reward(_examples(20), responses)
    assert [i for i, o in enumerate(outcomes) if o.kind == kind] == [3, 11]
    good = [i for i, o in enumerate(outcomes) if o.kind == 'ok']
    assert len(good) == 18 and pool.counts()[kind] == 2
    assert all(
      outcomes[i].components['outcome'] == (i not in (4, 12)) for i in good
    )


def test_a_reply_after_the_end_of_its_call_is_counted(bad):
  with VerifierPool(bad.Misbehaving(), 1) as pool:
    assert pool.reward(_examples(1), ['late'])[0].kind == 'ok'
    (worker,) = pool._crew.workers
    assert worker.connection.poll(SOON)
    outcomes = pool.reward(_examples(4), ['0', 'wrong', '2', '3'])
    assert [o.components['outcome'] for o in outcomes] == [1.0, 0.0, 1.0, 1.0]
    assert pool.counts()['stray'] == 1
    assert not _is_running(worker.pid)


def test_a_process_that_outlives_its_call_is_killed(bad, tmp_path):
  """Before the next sample is judged, also one in its own session."""
  pid_file = tmp_path / 'pid'
  with VerifierPool(bad.Misbehaving(), 1) as pool:
    before = pool.worker_pids()
    (outcome,) = pool.reward(_examples(1), [f'leave {pid_file}'])
    assert outcome.kind == 'ok' and pool.worker_pids() == before
    assert not _is_running(int(pid_file.read_text()))


@pytest.mark.parametrize('response', ['vanish', 'oversized'])
def test_a_worker_that_ends_by_itself_is_replaced(bad, response):
  responses = ['0', response, '2', response, '4']
  with VerifierPool(bad.Misbehaving(), 2) as pool:
    outcomes = pool.reward(_examples(5), responses)
  assert [o.kind for o in outcomes] == ['ok', 'died', 'ok', 'died', 'ok']


def test_too_much_memory_is_an_error_of_its_sample(bad):
  limit = 2 << 30
  with VerifierPool(bad.Misbehaving(), 1, memory_limit_bytes=limit) as pool:
    outcomes = pool.reward(_examples(3), ['0', 'hoard', '2'])
  assert [o.kind for o in outcomes] == ['ok', 'error', 'ok']
  assert 'MemoryError' in outcomes[1].detail


def test_output_floods_and_numpy_scalars_are_harmless(bad, capfd):
  with VerifierPool(bad.Misbehaving(), 1) as pool:
    outcomes = pool.reward(_examples(2), ['flood', 'scalar'])
  assert outcomes[0].components == {'outcome': 1.0}
  assert outcomes[1].components == {'outcome': 0.5, 'format': 1.0}
  assert 'xxx' not in capfd.readouterr().out


def test_idle_workers_and_the_nursery_may_be_killed_from_outside(bad):
  """No sample has caused it, so no sample fails."""
  with VerifierPool(bad.Misbehaving(), 2) as pool:
    os.kill(pool.worker_pids()[0], signal.SIGKILL)
    _wait_until(lambda: not _is_running(pool.worker_pids()[0]))
    first = pool.reward(_examples(6), list('012345'))
    old = pool.worker_pids()
    pool._crew._process.kill()
    _wait_until(lambda: not any(map(_is_running, old)))
    second = pool.reward(_examples(6), list('012345'))
    assert {o.kind for o in first + second} == {'ok'}
    assert not set(old) & set(pool.worker_pids())


@pytest.mark.parametrize('kills', [2, 9])
def test_a_nursery_that_is_killed_while_it_starts(bad, monkeypatch, kills):
  """It starts again, three times a call; then the call is an error."""
  fork, left = processes.Crew._fork, [kills]

  def killed(crew):
    if left[0]:
      left[0] -= 1
      crew._process.kill()
      crew._process.wait()
    return fork(crew)

  with VerifierPool(bad.Misbehaving(), 2) as pool:
    pool.reward(_examples(6), list('012345'))
    old = pool.worker_pids()
    pool._crew._process.kill()
    _wait_until(lambda: not any(map(_is_running, old)))
    monkeypatch.setattr(processes.Crew, '_fork', killed)
    if kills > 3:
      with pytest.raises(RuntimeError, match='out of memory'):
        pool.reward(_examples(6), list('012345'))
      left[0] = 0
    outcomes = pool.reward(_examples(6), list('012345'))
  assert {o.kind for o in outcomes} == {'ok'}


def test_unloadable_tasks_are_errors_at_start_up(bad):
  with pytest.raises(RuntimeError, match='needs the package nowhere'):
    VerifierPool(bad.Unloadable(), 1)
  with pytest.raises(ImportError, match='needs the package nowhere'):
    VerifierPool(bad.Unloadable(), 0)
  local = type('Local', (bad.Misbehaving,), {})
  with pytest.raises(RuntimeError, match='top level of a module'):
    VerifierPool(local(), 1)


def test_a_task_that_takes_too_long_to_load_is_named(bad):
  text = 'has not loaded the task in 0.5 seconds'
  with pytest.raises(RuntimeError, match=text):
    VerifierPool(bad.NeverLoaded(), 1, start_timeout_seconds=0.5)


def test_a_task_without_reward_is_an_error_at_start_up():
  """Episodes have none; other objects are not tasks."""
  with pytest.raises(TypeError, match=r'no method reward\(example, response\)'):
    VerifierPool(KeyDoor(), 1)
  with pytest.raises(TypeError, match='object does not derive from rl_jax.ta'):
    VerifierPool(object(), 0)


def test_first_failure_of_each_kind_is_logged_once(bad, caplog):
  caplog.set_level(logging.WARNING)
  with VerifierPool(bad.Misbehaving(), 0) as pool:
    for _ in range(3):
      pool.reward(_examples(3), ['raise_error', 'nan', 'raise_error'])
  kinds = [record.args[0] for record in caplog.records]
  assert kinds == ['error', 'invalid']
  assert 'Traceback' in caplog.text


def test_workers_do_not_import_jax(bad):
  """Start-up takes little time, and no accelerator is used."""
  with VerifierPool(bad.Modules(), 1) as pool:
    (outcome,) = pool.reward(_examples(1), [''])
  assert outcome.components == {'outcome': 0.0}
  code = (
    'import sys; from rl_jax import tasks, verification; '
    'assert "jax" not in sys.modules'
  )
  subprocess.run([sys.executable, '-c', code], check=True)


def test_an_interrupted_call_leaves_no_stale_answers(bad, monkeypatch):
  from rl_jax.verification import call_queue

  def interrupted(self, most):
    raise KeyboardInterrupt

  with VerifierPool(bad.Misbehaving(), 2) as pool:
    with monkeypatch.context() as patch:
      patch.setattr(call_queue.CallQueue, '_listen', interrupted)
      with pytest.raises(KeyboardInterrupt):
        pool.reward(_examples(9), ['wrong'] * 9)
    outcomes = pool.reward(_examples(9), list('012345678'))
  assert all(o.components['outcome'] for o in outcomes)


def test_close_ends_all_processes_and_is_final(bad):
  pool = VerifierPool(bad.Misbehaving(), 2)
  pids = pool.worker_pids()
  pool.close()
  pool.close()
  assert not any(map(_is_running, pids))
  with pytest.raises(RuntimeError, match='closed'):
    pool.reward([], [])


def test_arguments_are_checked(bad):
  with pytest.raises(ValueError, match='num_workers'):
    VerifierPool(bad.Misbehaving(), -1)
  with pytest.raises(ValueError, match='timeout_seconds'):
    VerifierPool(bad.Misbehaving(), 1, timeout_seconds=0.0)
  with VerifierPool(Arithmetic(), 0) as pool:
    assert pool.reward([], []) == []
    with pytest.raises(ValueError, match='2 examples but 1 responses'):
      pool.reward(_examples(2), ['0'])


_SCRIPT = """
import dataclasses, sys, time
from rl_jax.tasks import Example, Task
from rl_jax.verification.pool import VerifierPool

@dataclasses.dataclass(frozen=True)
class Mine(Task):
  num_prompts = lambda self, split: 0
  example = lambda self, split, index: None
  def reward(self, example, response):
    if response == 'hang':
      print_never = time.sleep(300)
    return {'outcome': 1.0}

if __name__ == '__main__':
  pool = VerifierPool(Mine(), 2, timeout_seconds=200.0)
  one = Example(prompt='', answer='', id=0)
  assert pool.reward([one], [''])[0].components == {'outcome': 1.0}
  print(*pool.worker_pids(), flush=True)
  pool.reward([one] * 2, ['hang'] * 2)
"""


def test_workers_of_a_script_die_with_it(tmp_path):
  """The task class is in __main__; the trainer gets SIGKILL during a call."""
  script = tmp_path / 'script.py'
  script.write_text(_SCRIPT)
  root = pathlib.Path(__file__).resolve().parents[2]
  environment = {**os.environ, 'PYTHONPATH': root}
  with subprocess.Popen(
    [sys.executable, str(script)],
    stdout=subprocess.PIPE,
    text=True,
    env=environment,
  ) as process:
    pids = [int(word) for word in process.stdout.readline().split()]
    assert len(pids) == 2 and all(map(_is_running, pids))
    process.send_signal(signal.SIGKILL)
    process.wait()
  _wait_until(lambda: not any(map(_is_running, pids)))


@pytest.mark.parametrize('num_workers', [0, 1])
def test_a_missing_weighted_component_costs_its_sample(bad, num_workers):
  """`reward_weights` names 'length'; one reply lacks it."""
  task = bad.Misbehaving()
  object.__setattr__(task, 'reward_weights', {'length': 1.0})
  with VerifierPool(task, num_workers) as pool:
    responses = ['good', 'short', 'good']
    outcomes = pool.reward(_examples(3), responses)
    assert [o.kind for o in outcomes] == ['ok', 'invalid', 'ok']
    assert "names ['length']" in outcomes[1].error
    assert "are ['outcome']" in outcomes[1].error
    assert pool.counts()['invalid'] == 1


@pytest.mark.parametrize('num_workers', [0, 1])
def test_a_name_that_no_reward_has_is_an_error(bad, num_workers):
  """At the first call, with the names that exist; a run would learn nothing."""
  task = bad.Misbehaving()
  object.__setattr__(task, 'reward_weights', {'lenght': 1.0})
  with VerifierPool(task, num_workers) as pool:
    with pytest.raises(ValueError, match="'lenght'.*'length', 'outcome'"):
      pool.reward(_examples(2), ['good', 'good'])


@pytest.mark.parametrize('num_workers', [0, 1])
def test_a_misspelt_name_is_found_before_the_first_call(bad, num_workers):
  """By a right response; one that cannot be judged shows nothing."""
  task = bad.Misbehaving()
  object.__setattr__(task, 'reward_weights', {'lenght': 1.0})
  with VerifierPool(task, num_workers) as pool:
    pool.check_weights(_examples(1)[0], 'raise_error')
    with pytest.raises(ValueError, match="'lenght'.*'length', 'outcome'"):
      pool.check_weights(_examples(1)[0], 'good')
    assert not any(pool.counts().values())


def test_a_sample_that_ends_all_workers_is_found(bad):
  """After its second time; two of them are more than the restarts of a call."""
  with VerifierPool(bad.Misbehaving(), num_workers=1) as pool:
    outcomes = pool.reward(_examples(4), ['0', 'orphan', 'orphan', '3'])
    assert [o.kind for o in outcomes] == ['ok', 'died', 'died', 'ok']
    assert 'all worker processes' in outcomes[1].error


@pytest.mark.parametrize('num_workers', [0, 1])
@pytest.mark.parametrize(
  'response, begins', [('quote', 'no number in long'), ('names', 'ValueError')]
)
def test_messages_of_failures_are_cut(bad, num_workers, response, begins):
  """They would fill the journal and the log; both ends of them stay."""
  with VerifierPool(bad.Misbehaving(), num_workers) as pool:
    (outcome,) = pool.reward(_examples(1), [response])
  assert len(outcome.detail) < 2 * messages.MOST_CHARACTERS + 100
  assert begins in outcome.detail and ' characters ... ' in outcome.detail
  if response == 'quote':
    assert 'in quote' in outcome.detail  # where it was raised
    assert outcome.detail.endswith('long response \n')


def test_short_messages_are_whole(bad):
  with VerifierPool(bad.Misbehaving(), 0) as pool:
    (outcome,) = pool.reward(_examples(1), ['raise_error'])
  assert outcome.detail.endswith("KeyError: 'a bug in the reward function'\n")
  assert 'in raise_error' in outcome.detail
