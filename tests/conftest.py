"""For all tests: properties are judged by their examples, never by how fast the machine makes them."""

from hypothesis import HealthCheck, settings

settings.register_profile("afoot", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("afoot")
