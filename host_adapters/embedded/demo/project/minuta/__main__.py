"""`python -m minuta 1h30m 45m` prints the total."""

import sys

from . import total


def main(arguments):
    print(total(arguments))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
