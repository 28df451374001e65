"""Values and files: how models, checkpoints and settings are written down, and read back with care."""

from surefoot.io.archive import read_archive, write_archive
from surefoot.io.codec import is_registered, pack, register, unpack

__all__ = ["is_registered", "pack", "read_archive", "register", "unpack", "write_archive"]
