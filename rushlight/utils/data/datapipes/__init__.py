"""Data pipes: datasets made of steps that are chained, pipe.map(f).shuffle().batch(8).

PyTorch keeps them as they are, and so do programs that have them. datapipe.py has the base classes,
iter the steps of streams and map those of indexed data.
"""

from rushlight.utils.data.datapipes import iter as iter
from rushlight.utils.data.datapipes import map as map
