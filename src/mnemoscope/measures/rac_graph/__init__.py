"""Tensor network of a recurrent arithmetic circuit: graph, cut, contraction and drawing."""
