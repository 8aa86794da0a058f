"""Parsed documents."""
import xml.etree.ElementTree as tree

TEXT = "<items>" + "".join(f'<item id="{n}"><name>thing {n}</name><price>{n}.5</price></item>' for n in range(300)) + "</items>"
documents = []


def parse():
    return tree.fromstring(TEXT)  # culprit


while True:
    documents.append(parse())
