"""The command line of lib.report."""
import sys

from lib.report.page import main


if __name__ == "__main__":
    sys.exit(main())
