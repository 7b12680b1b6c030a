"""What methods are made of: arrays in, arrays out."""
