"""Instruction families: each module decodes its opcodes to steps."""
