"""held  attribute `figs` of class matplotlib\._pylab_helpers\.Gcf -> .*matplotlib\.figure\.Figure .*

Figures that nobody closes: pyplot has a registry of them.
"""
import sys

import matplotlib
matplotlib.use("Agg")
import numpy
from matplotlib import pyplot


def draw():
    values = numpy.random.rand(300, 300)
    pyplot.figure().gca().imshow(values)


for _ in range(15):
    draw()
print("ready", flush=True)
sys.stdin.readline()
