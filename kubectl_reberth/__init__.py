"""The one command for people, above the three programs: it alone may import all of them."""
