"""Whether tools/ToolFlags.h lists the flags that each tool's --help prints, no more and no less: tool_flags.py ToolFlags.h."""
import re
import subprocess
import sys

text = open(sys.argv[1]).read()
wrong = 0
for tool in ("hpc-opt", "hpc-run", "hpc-plan"):
    listed = re.findall(r'"([^"]+)"', re.search(r'\{"%s",\s*"[^"]*",\s*\{([^}]*)\}' % tool, text).group(1))
    printed = set(re.findall(r"^ +--([a-z0-9-]+)", subprocess.run([tool, "--help"], capture_output=True, text=True, check=True).stdout, re.M)) - {"help"}
    wrong += set(listed) != printed or listed != sorted(listed)
    print(f"{tool}: {len(printed)} flags; missing: {sorted(printed - set(listed))}; too many: {sorted(set(listed) - printed)}{'' if listed == sorted(listed) else '; not sorted'}")
sys.exit(wrong)
