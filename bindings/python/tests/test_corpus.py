"""No file of the corpus crashes the process."""

import pathlib
import subprocess
import sys


def test_the_whole_corpus_in_a_process_of_its_own():
    script = pathlib.Path(__file__).with_name("alone.py")
    run = subprocess.run([sys.executable, script, "--with-others"], capture_output=True, text=True)
    assert run.returncode == 0, run.stdout + run.stderr
