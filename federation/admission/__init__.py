"""What happens to an object of the federation before it is kept: it is completed, and looked at once more.

The custom resource definitions say by themselves nearly all of what is right. Here is the rest: what is
filled in where nothing was said, ids and old spellings, and the few rules that look beyond the object itself.
All of it is pure: `reviewing` reads what the API server asks and writes the answer.
"""
