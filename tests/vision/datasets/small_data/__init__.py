"""Small copies of all data sets, as they lie on disk, with what reading them must give."""

from vision.datasets.small_data import arrays, labeled, motion, scenes
from vision.datasets.small_data.writing import BUILDERS, Case

__all__ = ["BUILDERS", "Case", "arrays", "labeled", "motion", "scenes"]
