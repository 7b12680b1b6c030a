"""What draws of a batch of prompts share."""


def check_fits(count: int, size: int) -> None:
  """Raises ValueError if `count` different prompts exceed the `size` of all."""
  if count > size:
    raise ValueError(
      f'a batch of {count} prompts cannot be drawn without replacement '
      f'from {size}'
    )
