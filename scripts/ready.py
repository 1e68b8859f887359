# SPDX-License-Identifier: Apache-2.0
"""Makes a C file of ready strategies: their names and texts. Usage: ready.py FILE... >ready.c"""
import os
import sys

print('#include "plan/ready.h"\n\n#include <stddef.h>\n')
print("const struct strategy_ready strategies_ready[] = {")
for path in sys.argv[1:]:
    print(f'    {{"{os.path.basename(path)}",')
    for line in open(path):
        text = line.rstrip("\n").replace("\\", "\\\\").replace('"', '\\"')
        print(f'     "{text}\\n"')
    print("    },")
print("    {NULL, NULL},\n};")
