import subprocess
import sys


def run(*arguments):
    return subprocess.run(
        [sys.executable, "-m", "minuta", *arguments], capture_output=True, text=True
    )


def test_prints_the_total_as_people_write_it():
    done = run("1h30m", "45m")
    assert done.stdout == "2h15m\n"
    assert done.returncode == 0


def test_a_wrong_duration_is_one_line():
    done = run("soon")
    assert done.returncode == 2
    assert done.stderr == "minuta: not a duration: 'soon'\n"
