"""What the federation keeps true: bindings for policies, clusters for bindings, Works, and what members hold.

Each controller looks at one object at a time, by its key: it reads the mirror, asks a pure function what is
to be written, and writes that with a precondition. So it may be stopped at any line, and begun again.
"""
