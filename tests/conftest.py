"""What all tests share: none is timed, since machines are noisy."""

from hypothesis import settings

settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")
