"""Fetches, checks and converts the data of a recipe.

  python -m experiments.data --paper=verl_baselines
  rl-jax data dr_grpo
  python -m experiments.data --paper=dr_grpo --weights

Files are fetched by name and revision, from the Hugging Face hub with the
package huggingface_hub or from GitHub with git. Columns, numbers of rows and
hashes are checked, questions that occur twice are removed, and
data/recipes/NAME.jsonl gets the rows with a manifest beside it, NAME.json. What
is there is not fetched again. Where a file cannot be fetched the error says
where to put it: data/recipes/raw/NAME.EXT. --weights also fetches models and
tokenizers, to models/. Without a name the recipes are listed. Training fetches
nothing.
"""

import os

from absl import app, flags

from experiments.flags import configuration
from experiments.papers import data_files, settings
from experiments.papers import recipe as recipe_lib

_PAPER = flags.DEFINE_string('paper', '', 'Name of the recipe.')
_WEIGHTS = flags.DEFINE_bool('weights', False, 'Also models and tokenizers.')


def main(argv):
  """Lists the recipes, or prepares one and reports all that failed."""
  paper = _paper(argv[1:])
  if not paper:
    for name in recipe_lib.names():
      print(f'{name:<20} {recipe_lib.load(name).title}')
    return
  if failed := prepare(paper, _WEIGHTS.value):
    raise ValueError('\n'.join(failed))


def prepare(paper: str, weights: bool) -> list[str]:
  """Prepares all files of a recipe; returns what failed, with what to do."""
  recipe, failed = recipe_lib.load(paper), []
  if not recipe.sources:
    print(f'{paper} plays games: it has no files of rows.')
  for source in recipe.sources:
    try:
      manifest = data_files.prepare(source)
    except (OSError, ValueError) as error:
      failed.append(str(error))
      continue
    print(
      f'{source.file}: {manifest["unique"]} rows of {manifest["total"]}, '
      f'{source.repository} at {manifest["revision"]}'
    )
  for name in recipe.models if weights else ():
    try:
      _fetch_model(name)
    except FileNotFoundError as error:
      failed.append(str(error))
  return failed


def _paper(arguments):
  """The name, as a flag or as the only argument."""
  if len(arguments) > 1 or (arguments and _PAPER.value):
    raise app.UsageError(f'unexpected arguments: {arguments}')
  return arguments[0] if arguments else _PAPER.value


def _fetch_model(name):
  """A whole repository of the hub, to the place that configurations name."""
  place = settings.model_path(name)
  try:
    import huggingface_hub as hub

    hub.snapshot_download(
      name,
      local_dir=place,
      allow_patterns=['*.json', '*.safetensors', '*.jinja', '*.model'],
    )
  except (OSError, ImportError) as error:
    raise FileNotFoundError(
      f'{name} cannot be fetched ({error}): put its files to '
      f'{os.path.abspath(place)}'
    ) from error
  print(f'{place}: {name}')


if __name__ == '__main__':
  configuration.run(main, takes_files=True)
