"""The layers of the sandbox that must work before untrusted code is run."""

from collections.abc import Sequence
import logging

from rl_jax.verification.sandbox.python_calls import Report

# Code can neither read what it is judged by, nor write outside.
SAFE = ('seccomp', 'landlock|namespaces')
_LOGGER = logging.getLogger(__name__)


def check_required(
  name: str, report: Report, layers: Sequence[str], require: Sequence[str]
) -> None:
  """Raises RuntimeError if one of the required layers is missing.

  Args:
    name: of the class that has the field `require`.
    report: of a run that tried the layers.
    layers: that were tried.
    require: names of layers, 'a|b' for one of them.
  """
  missing = report.missing
  works = {layer for layer in layers if layer not in missing}
  if 'mounts' in missing:
    works.discard('namespaces')  # files are as readable as without
  lacking = [one for one in require if not works & set(one.split('|'))]
  if lacking:
    raise RuntimeError(
      f'{name}.require names {lacking}, which this machine lacks ({missing}; '
      f'layers in use: {sorted(works)}): generated code could read the hidden '
      'tests or answers, or write outside. task.require=() allows it'
    )
  if missing:
    _LOGGER.warning('sandbox without %s', missing)
