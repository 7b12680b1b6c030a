"""--workdir of programs that read several runs."""

from absl import flags
import pytest

from experiments.flags import places


@pytest.mark.parametrize(
  'arguments',
  [
    ['--workdir=a', '--workdir=b', '--workdir=c,d'],
    ['--workdirs=a,b', '--workdir=c,d'],
  ],
)
def test_it_is_repeated_or_a_list(arguments, tmp_path, monkeypatch):
  """A comma separates, unless a directory has it in its name."""
  monkeypatch.chdir(tmp_path)
  (tmp_path / 'c,d').mkdir()
  values = flags.FlagValues()
  holder = places.define_workdirs('A run', values)
  values(['program', *arguments])
  assert places.workdirs(holder.value) == ['a', 'b', 'c,d']
  assert places.workdirs(['', 'x,']) == ['x']
