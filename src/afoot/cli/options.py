"""`AtOption` and `JsonOption` are the options that most commands have."""

from typing import Annotated

from cyclopts import Parameter

AtOption = Annotated[str, Parameter(help="the gateway's URL; default: the gateway on this machine")]
JsonOption = Annotated[bool, Parameter(help="print one JSON object per line")]
