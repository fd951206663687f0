"""What the benches share: one way to time a function."""
import statistics
import time


def seconds(function, repeats):
    """Median CPU seconds of `function`, after one call that is not counted, and its last result."""
    function()
    times = []
    for _ in range(repeats):
        start = time.process_time()
        result = function()
        times.append(time.process_time() - start)
    return statistics.median(times), result
