"""Progress of other libraries and programs: progress bars, child programs and downloads."""
