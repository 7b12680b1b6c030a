"""A small public model on word problems."""
