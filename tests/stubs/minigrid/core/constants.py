"""Numbers of things and colours."""

IDX_TO_OBJECT = {0: 'unseen', 6: 'ball'}
IDX_TO_COLOR = {0: 'red'}
