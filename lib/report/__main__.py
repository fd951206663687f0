"""The command line of lib.report."""
import sys

from lib.report.page import main

if __name__ == "__main__":
    sys.stdout.reconfigure(errors="backslashreplace")           # of names that the terminal cannot show
    sys.exit(main())
