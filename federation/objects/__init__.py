"""What all decisions share: names, templates, conditions, patches."""
