"""Hands a figure to Streamlit as it is: pages build plain ones, and the tests hold them to Plotly's own rules."""

from plotly.basedatatypes import BaseFigure

from dashboard.charts.base import Json


class RawFigure(BaseFigure):
    """A plain figure in the place of one that Plotly has put together, which would take longer than all the rest.

    Streamlit has Plotly check every plain figure by building it again. It takes a figure of Plotly's at its word.
    """

    def __init__(self, figure: Json) -> None:
        # Not the constructor of the parent: that is what checks and builds.
        self._plain = figure

    def to_dict(self) -> Json:
        """Return the figure."""
        return self._plain
