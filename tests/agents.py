"""Agent code against a chat client, as users write it; some of it is wrong."""


def ask(client, messages):
  """The content of the reply."""
  found = client.chat.completions.create(model='any', messages=messages)
  return found.choices[0].message.content


def twice(client, example):
  """Asks for a first answer, then for a second one; the longer one counts."""
  messages = [{'role': 'user', 'content': example.prompt}]
  first = ask(client, messages)
  messages.append({'role': 'assistant', 'content': first})
  messages.append({'role': 'user', 'content': '+='})
  second = ask(client, messages)
  return max(first, second, key=len)


def forgetful(client, example):
  """Its second call has not the first one's messages."""
  ask(client, [{'role': 'user', 'content': example.prompt}])
  return ask(client, [{'role': 'user', 'content': '1='}])


def summarizing(client, example):
  """Its second call has the first question and a summary of the answer."""
  question = {'role': 'user', 'content': example.prompt}
  first = ask(client, [question])
  ask(client, [question, {'role': 'user', 'content': f'{len(first)}+='}])
  return first


def repeating(client, example):
  """Its second call has nothing new."""
  messages = [{'role': 'user', 'content': example.prompt}]
  first = ask(client, messages)
  return ask(client, [*messages, {'role': 'assistant', 'content': first}])


def silent(client, example):
  """Never calls."""
  del client
  return example.prompt


def failing(client, example):
  """Fails after its call."""
  ask(client, [{'role': 'user', 'content': example.prompt}])
  raise KeyError('own')


def numeric(client, example):
  """Returns no text."""
  ask(client, [{'role': 'user', 'content': example.prompt}])
  return 3


def lonely(client):
  """Takes too few arguments."""
  return client
