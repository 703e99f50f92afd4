"""Similarity graphs of patient-state instances, from nearest neighbours to solved soft labels.

Holds the k-nearest-neighbour similarity, the backbone of a few weighted nodes, the solved node graph, the tie of one
new instance to a fixed graph with its compiled kernels, and the neighbours that explain an alert. May import
`core.numerics` and the ground. Other rooms use `knn_similarity`, the node graph, the extension and `explain`.
"""

from core.graph.similarity import knn_similarity

__all__ = ["knn_similarity"]
