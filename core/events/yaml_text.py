"""YAML that people write by hand: a key stands once, and values of a site mapping are texts as they are written."""

from collections.abc import Hashable
from typing import Any

import yaml


class DoubledKeyError(yaml.YAMLError):
    """A key stands twice in one place, so that one of its values would be lost; says line, key and what to do."""


class UniqueLoader(yaml.SafeLoader):
    """Refuses a key that stands twice; YAML forbids it, and PyYAML keeps the last."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        """Return the mapping of a node; raise DoubledKeyError for a key given twice."""
        seen: set[Hashable] = set()
        for key_node, _ in node.value if isinstance(node, yaml.MappingNode) else ():
            if key_node.tag.endswith(":merge"):
                continue
            key = self.construct_object(key_node, deep=True)
            if isinstance(key, Hashable) and key in seen:
                line = key_node.start_mark.line + 1
                raise DoubledKeyError(
                    f"line {line}: the key {str(key)[:80]!r} stands twice. Join both, or leave one out."
                )
            seen.add(key if isinstance(key, Hashable) else object())
        return super().construct_mapping(node, deep=deep)


class TextLoader(UniqueLoader):
    """Leaves values as they are written: ``NO`` is no boolean, ``0050912`` no number, ``8:00`` not 480.

    Nothing (``~``, ``null``) stays nothing. Whoever asks for a number reads it from the text.
    """


TextLoader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in found if tag.endswith((":null", ":merge"))]
    for first, found in yaml.SafeLoader.yaml_implicit_resolvers.items()
}
