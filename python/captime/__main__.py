"""``python -m captime ...`` is ``captime ...``."""

import os
import sys

from ._errors import ProgramNotFound
from ._program import find_program


def main() -> None:
    try:
        program = find_program()
    except ProgramNotFound as error:
        sys.exit(f"captime: {error}")
    os.execv(program, [program, *sys.argv[1:]])


if __name__ == "__main__":
    main()
