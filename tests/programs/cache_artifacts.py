"""Compile, and save PyTorch's cache artifacts; or load them first. Arguments: save or load, their file, a directory."""

import sys

import torch
import torch._dynamo  # PyTorch 2.7 can not load artifacts before: a circular import

import depyf

step, path, directory = sys.argv[1:]
if step == "load":
    with open(path, "rb") as file:
        torch.compiler.load_cache_artifacts(file.read())
with depyf.prepare_debug(directory):
    torch.compile(lambda x: (x.sin() + 1).relu())(torch.ones(4, 4))
if step == "save":
    found = torch.compiler.save_cache_artifacts()
    with open(path, "wb") as file:
        file.write(found[0])
