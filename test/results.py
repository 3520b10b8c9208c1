#!/usr/bin/python3
"""Counts the results of one suite from the files that its tool wrote and prints `passed failed skipped`.
A file that is missing or broken is one failure: the tool died before it could write it.

  test/results.py lit|gtest FILE...      lit -o FILE; --gtest_output=json:FILE of each shard
"""
import collections
import json
import sys

LIT = {"PASS": "passed", "FLAKYPASS": "passed", "XFAIL": "passed", "UNSUPPORTED": "skipped", "SKIPPED": "skipped", "EXCLUDED": "skipped"}


def lit(results):
    return [LIT.get(test["code"], "failed") for test in results["tests"]]


def gtest(results):
    kinds = []
    for suite in results["testsuites"]:
        for test in suite["testsuite"]:
            ran = test["status"] == "RUN" and test["result"] == "COMPLETED"
            kinds.append("failed" if test.get("failures") else "passed" if ran else "skipped")
    return kinds


def main():
    kind, *files = sys.argv[1:]
    counts = collections.Counter()
    for file in files:
        try:
            with open(file) as text:
                counts.update({"lit": lit, "gtest": gtest}[kind](json.load(text)))
        except (OSError, ValueError, KeyError) as error:
            print(f"results.py: {file}: {error!r}: counted as one failure", file=sys.stderr)
            counts["failed"] += 1
    print(counts["passed"], counts["failed"], counts["skipped"])


main()
