"""YAML that people write by hand: a key stands once, and values of a site mapping are texts as they are written."""

import re
from collections.abc import Hashable
from typing import Any, ClassVar

import yaml


class DoubledKeyError(yaml.MarkedYAMLError):
    """A key stands twice in one place, so that one of its values would be lost."""


class UniqueLoader(yaml.SafeLoader):
    """Refuses a key that stands twice; YAML forbids it, and PyYAML keeps the last."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        """Return the mapping of a node.

        Raises
        ------
        DoubledKeyError
        """
        seen: set[Hashable] = set()
        for key_node, _ in node.value if isinstance(node, yaml.MappingNode) else ():
            if key_node.tag.endswith(":merge"):
                continue
            key = self.construct_object(key_node, deep=True)
            if isinstance(key, Hashable) and key in seen:
                raise DoubledKeyError(
                    problem=f"the key {str(key)[:80]!r} stands twice", problem_mark=key_node.start_mark
                )
            seen.add(key if isinstance(key, Hashable) else object())
        return super().construct_mapping(node, deep=deep)


class TextLoader(UniqueLoader):
    """Leaves values as they are written: ``NO`` is no boolean, ``0050912`` no number, ``8:00`` not 480.

    Nothing (``~``, ``null``) stays nothing. Whoever asks for a number reads it from the text.
    """

    yaml_implicit_resolvers: ClassVar[dict[str, list[tuple[str, re.Pattern[str]]]]] = {
        first: [(tag, pattern) for tag, pattern in found if tag.endswith((":null", ":merge"))]
        for first, found in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }
