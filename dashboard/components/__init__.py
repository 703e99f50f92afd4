"""Pieces that several pages share: charts, badges, sentences."""
