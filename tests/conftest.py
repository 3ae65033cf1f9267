"""What holds for every test: what a run costs is counted, so a busy machine fails none."""

from hypothesis import HealthCheck, settings

settings.register_profile("counted", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("counted")
