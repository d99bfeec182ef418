"""Print as JSON how pandas reads the tables of the folder given, with its defaults."""

import json
import pathlib
import sys

import numpy as np
import pandas as pd

found = {}
for path in sorted(pathlib.Path(sys.argv[1]).iterdir()):
    if path.name == "otlp" or path.name == "trace":
        continue
    if path.stat().st_size == 0:
        found[path.name] = {"rows": 0}
        continue
    table = pd.read_csv(path) if path.suffix == ".csv" else pd.read_json(path, lines=True)
    whole = table.select_dtypes("int64")
    found[path.name] = {
        "rows": len(table),
        "types": {name: str(kind) for name, kind in table.dtypes.items()},
        "xor": {name: str(np.bitwise_xor.reduce(whole[name].to_numpy())) for name in whole},
    }
    if path.stem == "durations":
        medians = table.groupby(["condition", "stage"])["after_mid_ns"].median()
        found[path.name]["medians"] = {f"{condition} {stage}": ns for (condition, stage), ns in medians.items()}
print(json.dumps(found))
