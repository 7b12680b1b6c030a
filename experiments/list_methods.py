"""Lists the methods of configs/methods, or shows how two of them differ.

python -m experiments.list_methods                    one name a line
python -m experiments.list_methods --verbose          with summary and source
python -m experiments.list_methods --diff=grpo,dapo   field by field
python -m experiments.list_methods --diff=ppo_max,ppo_max@no_kl   a variant
python -m experiments.list_methods --markdown   writes configs/methods/README.md
"""

from absl import app, flags

from experiments.flags import configuration
from experiments.tables import all_methods, methods
from experiments.tables.method_difference import differences

_VERBOSE = flags.DEFINE_bool('verbose', False, 'Add summary and source.')
_MARKDOWN = flags.DEFINE_bool('markdown', False, 'Write the table of methods.')
_DIFF = flags.DEFINE_list('diff', None, 'Two names: how they differ.')


def describe(name: str) -> tuple[str, str]:
  """(one-line summary, source) from the docstring of configs/methods/NAME."""
  paper = methods.parts(name).get('Paper', 'unknown')
  return methods.summary(name), paper


def main(argv):
  """Prints the list or the difference."""
  if len(argv) > 1:
    raise app.UsageError(f'unexpected arguments: {argv[1:]}')
  if _MARKDOWN.value:
    configuration.check_clone('--markdown')
    (configuration.ROOT / all_methods.FILE).write_text(all_methods.page())
    return
  if _DIFF.value:
    if len(_DIFF.value) != 2:
      raise app.UsageError('--diff takes two names: --diff=grpo,dapo')
    old, new = map(configuration.load_method, _DIFF.value)
    print(f'{_DIFF.value[0]} -> {_DIFF.value[1]}')
    print('\n'.join(differences(old, new)) or 'no difference')
    return
  for name in configuration.names(methods.PACKAGE):
    print(name)
    if _VERBOSE.value:
      summary, source = describe(name)
      print(f'    {summary}\n    {source}')


if __name__ == '__main__':
  configuration.run(main)
