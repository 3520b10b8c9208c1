"""ends.py TOOL FOLDER WEIGHTS: an answer ends by --stop before the text, by --end-token with the token, and not before --min-new-tokens."""
import json
import subprocess
import sys

tool, folder, weights = sys.argv[1:]


def answer(*flags):
    words = [tool, f"{folder}/dynamo-eager-op18.onnx", f"--tokenizer={folder}", f"--weights={weights}", "--prompt=The wall", "--max-new-tokens=20", "--output=-", *flags]
    return json.loads(subprocess.run(words, capture_output=True, text=True, check=True).stdout)


whole = answer("--end-token=256")
assert whole["finish_reason"] == "length", whole
stop = whole["text"][3:6]
assert stop.isascii(), whole
stopped = answer("--end-token=256", f"--stop={stop}")
assert stopped["finish_reason"] == "stop_text" and stopped["text"] == whole["text"][: whole["text"].index(stop)], (whole, stopped)
assert whole["ids"][: len(stopped["ids"])] == stopped["ids"] and len(stopped["ids"]) < 20, (whole, stopped)
end = whole["ids"][4]
first = whole["ids"].index(end)
ended = answer(f"--end-token={end}")
assert ended["finish_reason"] == "end_token" and ended["ids"] == whole["ids"][: first + 1], (whole, ended)
assert whole["text"].startswith(ended["text"]) and len(ended["text"]) < len(whole["text"]), (whole, ended)
later = answer(f"--end-token={end}", "--min-new-tokens=10")
assert end not in later["ids"][:10], later
