"""All methods on 2-digit arithmetic at equal tokens."""
