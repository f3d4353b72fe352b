"""Sentiment classifiers, each described by its card in `classifiers/` (README.md there).

cards       facts and measured figures of each, and which one is the default
models      the classifiers at work: a label and probabilities for each text
linear      the engine `linear`
story       the engine `story`
training    trains a linear classifier on a table
"""
