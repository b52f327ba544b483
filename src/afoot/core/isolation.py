"""What a call may use that runs in a child process, and how such processes are kept (G1)."""

from msgspec import Struct

ISOLATION = ("isolate", "cpu_s", "memory_bytes", "open_files", "processes")  # what may be set for each tool


class Isolation(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """Child processes for isolated tools. A limit of 0 is none."""

    enabled: bool = True  # False: isolated tools run in this process, as others do
    cpu_s: float = 300.0
    memory_bytes: int = 2 * 1024 * 1024 * 1024
    open_files: int = 1024
    processes: int = 64
    warm: int = 1  # children kept ready for each module of isolated tools
    nice: int = 10
    spare: int = 1  # processors that no child uses, if there are others: reports of all other calls need one
