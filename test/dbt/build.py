"""Runs commands of dbt in one process, and prints a line for each step that did not succeed.

Arguments: the folder of the project, the target, and the commands, whose words are separated by spaces.
"""

import sys

from dbt.cli.main import dbtRunner

project, target, *commands = sys.argv[1:]
options = ["--project-dir", project, "--profiles-dir", project, "--target", target]
for command in commands:
    outcome = dbtRunner().invoke(["--quiet", "--log-level", "error", *command.split(), *options])
    if outcome.exception:
        print(f"{command}: {outcome.exception}")
    results = getattr(outcome.result, "results", None) or []
    for one in results:
        if one.status not in ("success", "pass"):
            print(f"{command}: {one.node.name} {one.status}: {one.message}")
    print(f"{command}: {'done' if outcome.success else 'failed'}, {len(results)} steps")
