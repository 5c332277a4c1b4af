"""Shortens the time that a Python process gives to requests of others that may still be on their way.

Python imports this first if its folder is on PYTHONPATH.
"""

import os

from rescheduler import settings

settings.LONGEST_REQUEST = float(os.environ["REBERTH_LONGEST_REQUEST"])
