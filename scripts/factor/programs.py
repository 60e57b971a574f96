"""The programs: what each does in a folder of a file system. All are seeded; none waits for a clock."""

from __future__ import annotations

import importlib.util
import os
import pwd
import random
import shutil
import sqlite3
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from served import run

SOURCE = Path(__file__).resolve().parent.parent.parent

Program = Callable[[Path, random.Random], None]


def sqlite(folder: Path, rng: random.Random, journal: str, synchronous: str, count: int) -> None:
    """One row in each transaction, at random places of a table of 40 MB."""
    base = sqlite3.connect(folder / "db", isolation_level=None)
    base.execute(f"pragma journal_mode={journal}")
    base.execute("create table t (id integer primary key, data blob)")
    base.execute("begin")
    rows = ((key, rng.randbytes(450).hex()) for key in range(40000))
    base.executemany("insert into t values (?, ?)", rows)
    base.execute("commit")
    base.execute(f"pragma synchronous={synchronous}")
    for _ in range(count):
        row = (rng.randbytes(450).hex(), rng.randrange(40000))
        base.execute("update t set data = ? where id = ?", row)
    base.close()


def fio(folder: Path, rng: random.Random, size: str, *options: str) -> None:
    job = ["fio", "--name=job", "--rw=randwrite", "--bs=4k", "--size=128M", f"--io_size={size}"]
    job += [f"--directory={folder}", f"--randseed={rng.randrange(1 << 30)}", "--refill_buffers"]
    run(*job, *options)


def unpack(folder: Path, _: random.Random) -> None:
    """The sources of this repository, unpacked twelve times."""
    with tempfile.NamedTemporaryFile(suffix=".tar") as archive:
        run("git", "-C", SOURCE, "archive", "-o", archive.name, "HEAD")
        for copy in range(12):
            (folder / str(copy)).mkdir()
            run("tar", "-xf", archive.name, "-C", folder / str(copy))
            os.sync()


def git(folder: Path, rng: random.Random) -> None:
    """The sources in a repository: committed, then 40 commits of some changed files each."""
    unpack_once = folder / "tree"
    unpack_once.mkdir()
    with tempfile.NamedTemporaryFile(suffix=".tar") as archive:
        run("git", "-C", SOURCE, "archive", "-o", archive.name, "HEAD")
        run("tar", "-xf", archive.name, "-C", unpack_once)
    files = sorted(unpack_once.rglob("*.rs"))
    who = ("-c", "user.name=factor", "-c", "user.email=factor@localhost", "-c", "core.fsync=all")
    run("git", "init", "-q", cwd=unpack_once)
    for commit in range(41):
        for path in rng.sample(files, 20 if commit else 0):
            path.write_text(f"// {rng.random()}\n{path.read_text()}")
        run("git", *who, "add", "-A", cwd=unpack_once)
        run("git", *who, "commit", "-qm", f"change {commit}", cwd=unpack_once)


def pgbench(folder: Path, rng: random.Random) -> None:
    """TPC-B at scale 10 from four clients, 2,000 transactions each, every one flushed."""
    bin_folder = max(Path("/usr/lib/postgresql").glob("*/bin"))
    user = pwd.getpwnam("postgres")
    base, sockets = folder / "base", tempfile.mkdtemp()
    base.mkdir()
    for path in (base, sockets):
        os.chown(path, user.pw_uid, user.pw_gid)

    def as_user(name: str, *arguments: str) -> None:
        command = ["setpriv", f"--reuid={user.pw_uid}", f"--regid={user.pw_gid}", "--clear-groups"]
        run(*command, str(bin_folder / name), *arguments)

    as_user("initdb", "-D", str(base), "--no-locale", "-E", "UTF8", "-A", "trust")
    options = f"-k {sockets} -c listen_addresses='' -c shared_buffers=64MB"
    as_user("pg_ctl", "-D", str(base), "-w", "-l", f"{sockets}/log", "-o", options, "start")
    try:
        connection = ("-h", sockets, "-U", "postgres", "postgres")
        as_user("pgbench", "-q", "-i", "-s", "10", *connection)
        seed = str(rng.randrange(1 << 30))
        as_user("pgbench", "-c", "4", "-t", "2000", f"--random-seed={seed}", *connection)
    finally:
        as_user("pg_ctl", "-D", str(base), "-w", "-m", "fast", "stop")
        shutil.rmtree(sockets)


def mariadb(folder: Path, rng: random.Random) -> None:
    """InnoDB as it is set up by default: 100,000 rows of 200 bytes, then 5,000 transactions that change one row each."""
    base, server = folder / "base", tempfile.mkdtemp()
    run("mariadb-install-db", "--no-defaults", f"--datadir={base}", "--user=root", "--skip-test-db")
    socket, script = f"{server}/socket", Path(server) / "script"
    where = ("--no-defaults", f"--socket={socket}")
    log = ("--innodb-buffer-pool-size=64M", f"--log-error={server}/log", f"--pid-file={server}/pid")
    command = ["mariadbd", *where, f"--datadir={base}", "--user=root", "--skip-networking", *log]
    running = subprocess.Popen(command, stderr=subprocess.DEVNULL)
    with script.open("w") as sql:
        sql.write("create table test.t (id int primary key, data varchar(400)) engine=innodb; begin;\n")
        for key in range(100000):
            sql.write(f"insert into test.t values ({key}, '{rng.randbytes(100).hex()}');\n")
        sql.write("commit;\n")
        for _ in range(5000):
            text, key = rng.randbytes(100).hex(), rng.randrange(100000)
            sql.write(f"update test.t set data = '{text}' where id = {key};\n")
        sql.write("shutdown;\n")
    try:
        while not Path(socket).exists() and running.poll() is None:
            time.sleep(0.1)
        run("mariadb", *where, "-e", "create database if not exists test")
        run("mariadb", *where, "-e", f"source {script}")
    finally:
        running.terminate()
        running.wait()
        shutil.rmtree(server)


def dpkg(folder: Path, _: random.Random) -> None:
    """Thirty packages with the sources of a crate each, installed as apt does it: each file is synced, then renamed."""
    root = folder / "root"
    for part in ("info", "updates"):
        (root / "var/lib/dpkg" / part).mkdir(parents=True)
    for part in ("status", "available"):
        (root / "var/lib/dpkg" / part).touch()
    with tempfile.TemporaryDirectory() as made:
        crates = sorted(path for path in (SOURCE / "crates").iterdir() if path.is_dir())
        packages = []
        for number in range(30):
            package = Path(made) / f"p{number}"
            shutil.copytree(crates[number % len(crates)], package / f"usr/share/p{number}")
            (package / "DEBIAN").mkdir()
            about = f"Package: p{number}\nVersion: 1\nArchitecture: all\nMaintainer: factor\nDescription: sources\n"
            (package / "DEBIAN/control").write_text(about)
            run("dpkg-deb", "--root-owner-group", "-Zgzip", "-b", package, f"{made}/{number}.deb")
            packages.append(f"{made}/{number}.deb")
        run("dpkg", f"--root={root}", "--force-not-root", "--install", *packages)


def rocksdb(folder: Path, rng: random.Random, count: int, *, sync: bool) -> None:
    """Puts of 1,000 bytes, half of which compress, under random keys of a hundred thousand."""
    from rocksdict import Options, Rdict, WriteOptions  # noqa: PLC0415

    options = Options(raw_mode=True)
    options.set_write_buffer_size(16 << 20)
    options.set_target_file_size_base(16 << 20)
    base = Rdict(str(folder / "db"), options=options)
    how = WriteOptions()
    how.sync = sync
    base.set_write_options(how)
    for _ in range(count):
        base[f"{rng.randrange(100000):016d}".encode()] = rng.randbytes(500) + bytes(500)
    base.flush()
    base.close()


def mail(folder: Path, rng: random.Random) -> None:
    """A maildir: 3,000 messages of 1 to 40 KiB delivered with fsync and rename, a third of them deleted later."""
    for name in ("tmp", "new", "cur"):
        (folder / name).mkdir()
    kept: list[Path] = []
    for number in range(3000):
        path = folder / "tmp" / str(number)
        with path.open("wb") as message:
            message.write(rng.randbytes(rng.randrange(512, 20 << 10)).hex().encode())
            message.flush()
            os.fsync(message.fileno())
        kept.append(path.rename(folder / "new" / str(number)))
        directory = os.open(folder / "new", os.O_RDONLY)
        os.fsync(directory)
        os.close(directory)
        if number % 3 == 2:
            kept.pop(rng.randrange(len(kept))).unlink()


PROGRAMS: dict[str, Program] = {
    "sqlite-wal-normal": lambda folder, rng: sqlite(folder, rng, "wal", "normal", 40000),
    "sqlite-journal-full": lambda folder, rng: sqlite(folder, rng, "delete", "full", 4000),
    "sqlite-wal-full": lambda folder, rng: sqlite(folder, rng, "wal", "full", 6000),
    "pgbench": pgbench,
    "mariadb": mariadb,
    "rocksdb-fill": lambda folder, rng: rocksdb(folder, rng, 200000, sync=False),
    "rocksdb-sync": lambda folder, rng: rocksdb(folder, rng, 6000, sync=True),
    "untar": unpack,
    "git": git,
    "dpkg": dpkg,
    "fio-fsync-1": lambda folder, rng: fio(folder, rng, "16M", "--fsync=1"),
    "fio-fsync-8": lambda folder, rng: fio(folder, rng, "64M", "--fsync=8"),
    "fio-fsync-64": lambda folder, rng: fio(folder, rng, "128M", "--fsync=64"),
    "fio-direct-qd32": lambda folder, rng: fio(
        folder, rng, "192M", "--direct=1", "--ioengine=libaio", "--iodepth=32"
    ),
    "fio-buffered": lambda folder, rng: fio(folder, rng, "256M"),
    "mail": mail,
}


def missing(program: str) -> str | None:
    """What a program lacks on this machine."""
    if program.startswith("fio") and not shutil.which("fio"):
        return "fio"
    if program == "pgbench" and not any(Path("/usr/lib/postgresql").glob("*/bin/postgres")):
        return "PostgreSQL"
    if program == "mariadb" and not shutil.which("mariadbd", path=f"{os.environ['PATH']}:/usr/sbin"):
        return "MariaDB"
    if program == "dpkg" and not shutil.which("dpkg-deb"):
        return "dpkg"
    if program.startswith("rocksdb") and importlib.util.find_spec("rocksdict") is None:
        return "the Python package rocksdict"
    return None
