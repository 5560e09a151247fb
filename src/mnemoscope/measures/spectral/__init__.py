"""Spectra and non-normality of recurrent matrices."""
