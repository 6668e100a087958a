"""The checkpoint format: a zip archive of one pickle and the bytes of each storage.

The format is PyTorch's: the pickle (data.pkl) names PyTorch's own functions and classes, so each
framework reads the files of the other. archive.py owns the zip, pickling.py writes the pickle,
unpickling.py reads it without running code, rebuild.py says what the names in it stand for.
Imported when a file is first saved or loaded.
"""
