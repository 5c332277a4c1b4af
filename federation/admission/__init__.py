"""Admission of the federation's objects: defaulting and validation.

The schemas of the custom resource definitions check nearly everything. Here is what a schema cannot express:
defaults that depend on other fields, permanent ids, old spellings, and rules across fields. All of it is
pure: `review` reads the AdmissionReview and writes the answer.
"""
