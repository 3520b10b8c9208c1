"""signals.py TOOL FOLDER: SIGINT during generation leaves the answers as far as they are, as valid JSON, and exit code 0; a reader of the text that leaves ends the
tool by SIGPIPE and without a word. Both alone and as two processes. The model has 64 positions, so many prompts make a long run."""
import json
import os
import signal
import subprocess
import sys
import tempfile
import time

tool, folder = sys.argv[1:]
with tempfile.TemporaryDirectory() as work:
    with open(f"{work}/prompts.jsonl", "w") as prompts:
        prompts.writelines(json.dumps({"prompt": f"The {number}"}) + "\n" for number in range(20000))
    call = [tool, f"{folder}/dynamo-eager-op18.onnx", f"--tokenizer={folder}", f"--prompts={work}/prompts.jsonl", "--max-new-tokens=40", "--end-token=256"]
    for more in ([], ["--tp=2", "--processes=2"]):
        with subprocess.Popen(call + more, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
            assert process.stdout.readline() != b""
            process.stdout.close()
            said = process.stderr.read()
            process.wait()
        assert b"error" not in said, said
        if not more:
            assert process.returncode == -signal.SIGPIPE and said == b"", (process.returncode, said)
        output = f"{work}/answers.jsonl"
        # Lines on standard output come while it runs, so one of them says that it generates. lit ignores SIGINT, as do programs that it starts.
        with subprocess.Popen(call + more + ["--output=-"], stdout=open(output, "wb"), stderr=subprocess.PIPE, start_new_session=True,
                              preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL)) as process:
            while os.path.getsize(output) == 0 and process.poll() is None:
                time.sleep(0.01)
            os.killpg(process.pid, signal.SIGINT)
            said = process.stderr.read().decode()
            process.wait()
        assert process.returncode == 0 and "note: a signal ended the run: of 20000 answers, " in said, (process.returncode, said)
        answers = [json.loads(line) for line in open(output)]
        assert 0 < len(answers) < 20000
        assert all(len(answer["ids"]) == 40 or answer["finish_reason"] != "length" for answer in answers)
