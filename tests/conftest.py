"""What holds for all tests."""

import asyncio

# Without this, asking for a loop between tests makes one that nobody closes, and its ResourceWarning is an
# error in whichever test the garbage collector runs.
asyncio.set_event_loop(None)
