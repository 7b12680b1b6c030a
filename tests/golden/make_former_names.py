"""Writes former_names.json: classes and digests as this version has them.

Run once, on the version whose names are to stay readable:
python tests/golden/make_former_names.py
"""

import json
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from configs.methods import grpo  # noqa: E402
from experiments.flags import configuration  # noqa: E402
from rl_jax import serialization  # noqa: E402


def main():
  """Every class of the library, and the digest of every configuration."""
  classes = serialization.known_classes().values()
  methods = configuration.names('configs.methods')
  found = {
    'classes': sorted(
      f'{cls.__module__}.{cls.__name__}'
      for cls in classes
      if cls.__module__.startswith('rl_jax.')
    ),
    'configurations': {
      name: serialization.digest(
        configuration.load_config(name, grpo.get_method())
      )
      for name in configuration.names('configs')
    },
    'methods': {
      name: serialization.digest(configuration.load_method(name))
      for name in methods
    },
  }
  path = pathlib.Path(__file__).with_name('former_names.json')
  path.write_text(json.dumps(found, indent=1) + '\n')


if __name__ == '__main__':
  main()
