"""Clients in the package's own form."""


class OpenAIChatCompletionsClient:
  """Holds a client of the API."""

  def __init__(self, client):
    self.client = client
