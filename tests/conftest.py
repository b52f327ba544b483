"""For all tests: properties are judged by their examples, and no line by the width of somebody's terminal."""

import os

from hypothesis import HealthCheck, settings

settings.register_profile("afoot", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("afoot")
os.environ.pop("COLUMNS", None)  # whoever runs tests side by side sets it, and programs cut their lines by it
