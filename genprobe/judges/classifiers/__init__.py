"""Sentiment classifiers, each described by its card in `classifiers/` (README.md there).

cards       what is known of each, and which one is the default
models      the classifiers at work: a label and probabilities for each text
linear      the engine `linear`
story       the engine `story`
training    a linear classifier made from a table
"""
