"""Objects as all decisions need them: names, resource templates, conditions, patches, caches."""
