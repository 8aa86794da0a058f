"""Imports a module and ends: everything since the start of the process counts.   work_import.py MODULE 1"""
import importlib
import sys

import steady

allocated, _, begun = steady.now()
importlib.import_module(sys.argv[1])
# CPU since the start of the process; wall and allocations since the line above, which leaves out little.
steady.report((allocated, 0.0, begun), int(sys.argv[2]))
