# SPDX-License-Identifier: Apache-2.0
"""Makes a C file of the files of the page (src/page/routes.h). Usage: embed.py FILE... >files.c"""
import os
import sys

TYPES = {".html": "text/html", ".css": "text/css", ".js": "text/javascript"}

print('#include "page/routes.h"\n\n#include <stddef.h>\n')
rows = []
for number, path in enumerate(sys.argv[1:]):
    data = open(path, "rb").read()
    name = os.path.basename(path)
    kind = TYPES[os.path.splitext(name)[1]] + "; charset=utf-8"
    print(f"static const unsigned char file_{number}[] = {{")
    for at in range(0, len(data), 32):
        print("    " + ",".join(map(str, data[at:at + 32])) + ",")
    print("};")
    address = "/" if name == "index.html" else "/" + name
    rows.append(f'    {{"{address}", "{kind}", file_{number}, sizeof file_{number}}},')
print("const struct page_file page_files[] = {", *rows, "    {NULL, NULL, NULL, 0},\n};", sep="\n")
