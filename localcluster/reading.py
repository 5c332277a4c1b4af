"""YAML files that somebody names, each refused by its name if it cannot be used."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from localcluster.errors import LocalClusterError


def read_objects(file: Path) -> list[dict[str, Any]]:
    """The documents of a file, each of them a mapping."""
    try:
        documents = [each for each in yaml.safe_load_all(file.read_text()) if each is not None]
    except OSError as error:
        raise LocalClusterError(f"{file} cannot be read: {error.strerror}") from None
    except (ValueError, yaml.YAMLError) as error:
        raise LocalClusterError(f"{file} is no YAML: {' '.join(str(error).split())}") from None
    if not all(isinstance(each, Mapping) for each in documents):
        raise LocalClusterError(f"{file} holds something that is no mapping")
    return documents


def read_object(file: Path) -> dict[str, Any]:
    """The one document of a file."""
    documents = read_objects(file)
    if len(documents) != 1:
        raise LocalClusterError(f"{file} holds {len(documents)} documents, one is needed")
    return documents[0]
