"""The command line of lib.report."""
import signal
import sys

from lib.report.page import main, stop


if __name__ == "__main__" and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
    signal.signal(signal.SIGINT, stop)          # before the slow imports


if __name__ == "__main__":
    sys.stdout.reconfigure(errors="backslashreplace")           # of names that the terminal cannot show
    sys.exit(main())
