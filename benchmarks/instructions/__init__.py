"""Instruction counts of small fixed workloads: what a machine does, however busy it is.

``unstripped_build`` compiles the extension with its symbols, ``callgrind`` runs ``fixed_workloads``
under valgrind and adds up, ``stored_counts`` keeps what came out; ../check_instructions.py is the
command.
"""
