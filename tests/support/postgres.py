"""A PostgreSQL server of our own on a socket in a temporary folder."""

import os
import pwd
import shutil
import subprocess
import tempfile
from contextlib import contextmanager
from pathlib import Path


def find():
    """The folder of PostgreSQL's server programs, or None where there is none."""
    folders = [path.parent for path in Path("/usr/lib/postgresql").glob("*/bin/initdb")]
    on_path = shutil.which("initdb")
    return max(folders, default=Path(on_path).parent if on_path else None)


def missing():
    """Why no server can be started here, or None."""
    if find() is None:
        return "PostgreSQL is not installed (Debian: postgresql)"
    if os.geteuid() == 0 and "postgres" not in {user.pw_name for user in pwd.getpwall()}:
        return "PostgreSQL doesn't run as root, and there is no user postgres"
    return None


@contextmanager
def server():
    """Run a server with its data in a folder of its own; gives the URL of an empty database."""
    # Not below pytest's folder, which is closed to the server's user.
    with tempfile.TemporaryDirectory(prefix="wtwin-watch-postgres-") as name:
        yield from _server(Path(name))


def _server(folder):
    programs = find()
    user = "postgres" if os.geteuid() == 0 else pwd.getpwuid(os.geteuid()).pw_name
    options = {}
    if os.geteuid() == 0:
        account = pwd.getpwnam("postgres")
        os.chown(folder, account.pw_uid, account.pw_gid)
        options = {"user": account.pw_uid, "group": account.pw_gid, "extra_groups": []}
    data = folder / "data"

    def call(*command):
        subprocess.run(
            [str(part) for part in command],
            check=True,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            stdin=subprocess.DEVNULL,
            cwd=folder,
            timeout=120,
            **options,
        )

    call(programs / "initdb", "-D", data, "-U", user, "-A", "trust", "--no-sync", "-E", "UTF8")
    settings = f"-c listen_addresses='' -c unix_socket_directories='{folder}' -c fsync=off"
    call(programs / "pg_ctl", "-D", data, "-w", "-l", folder / "log", "-o", settings, "start")
    try:
        yield f"postgresql+psycopg://{user}@/postgres?host={folder}"
    finally:
        call(programs / "pg_ctl", "-D", data, "-m", "immediate", "stop")
