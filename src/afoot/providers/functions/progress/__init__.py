"""Progress of other libraries and programs: progress bars, subprocesses and downloads."""
