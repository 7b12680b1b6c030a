"""Names of earlier versions, which files of users and runs may still have."""

# Former name -> that of today: of a class, and of a field by (class of today,
# former name). Files, --set and --add may use them; digests still do.
RENAMED: dict[str | tuple[str, str], str] = {
  'Given': 'RecordedPairs',
  'Logged': 'RecordedResponse',
  'LoggedEpisodes': 'RecordedEpisodes',
  'LoggedMoves': 'RecordedMoves',
  'ToldKeyDoor': 'NarratedKeyDoor',
  ('Arms', 'told'): 'observed',
  ('BracketPrograms', 'num_logged'): 'num_recorded',
  ('RecordedEpisodes', 'num_logged'): 'num_recorded',
  ('RecordedWalks', 'num_logged'): 'num_recorded',
  ('RolloutConfig', 'logged_prompts'): 'recorded_prompts',
}

# Fields that are gone, by (class of today, name): why, as the error of --set
# says it. Files may have them; what is read ignores them.
REMOVED: dict[tuple[str, str], str] = {
  ('RolloutConfig', 'episodes'): 'rows of episodes never wait for each other',
}
