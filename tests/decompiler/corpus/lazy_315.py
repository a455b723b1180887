"""Lazy imports (3.15 and later); specimens show what the module has imported."""

lazy import json
lazy import os.path
lazy import xml.dom as dom
lazy from string import digits, hexdigits as hexa
lazy from collections import abc
import sys as system
from math import pi, tau as turn

lazy import colorsys; import bisect


# run: whole_modules()
def whole_modules():
    return json.dumps([1]), os.path.basename('a/b'), dom.__name__


# run: parts_of_modules()
def parts_of_modules():
    return digits, hexa, abc.__name__, pi, turn, system.__name__, bisect.__name__, colorsys.__name__


# run: inside()
def inside():
    import json.decoder
    from json import decoder as d, encoder

    return d is json.decoder, encoder.__name__


# run: lazy_as_name(2)
def lazy_as_name(lazy):
    return lazy
