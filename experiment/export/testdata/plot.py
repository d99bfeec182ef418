"""Run plot_run.py once for each list of arguments on stdin, and print how each ended.

It is one process since importing pandas and matplotlib takes longer than all else.
"""

import json
import runpy
import sys
import traceback

script, ends = sys.argv[1], []
for arguments in json.load(sys.stdin):
    sys.argv = [script] + arguments
    try:
        runpy.run_path(script, run_name="__main__")
        ends.append("")
    except SystemExit as end:
        ends.append(str(end.code))
    except Exception:
        ends.append(traceback.format_exc())
print(json.dumps(ends))
