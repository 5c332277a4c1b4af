"""How long a text from outside may be: nothing reads more of it, and nothing keeps more.

Whoever may write an object also chooses the length of its texts: up to the megabytes that the API server
takes.
"""

from typing import Final

LONGEST_VALUE: Final = 64
"""A quantity, a duration or a time is never longer; a longer text is none."""
LONGEST_TEXT: Final = 1024
"""An annotation or a label that is read, and a message for people."""
