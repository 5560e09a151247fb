"""Fisher memory of vector, matrix, queue and arbitrary recurrent networks."""
