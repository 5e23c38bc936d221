# Loads the scripts that come with programs and libraries, in the place of gdb's own auto-loading, which asks for a
# folder's name and not for who can write there. What is executed belongs to root or to the caller and stands where
# nobody else can write, or it is named in the auto-load safe path. For Python 2.7 and later.
import gdb, grp, os, pwd, stat, struct, sys, traceback

LINKS_MAX = 40
SCRIPT_BYTES_MAX = 16 << 20
SECTION_BYTES_MAX = 1 << 20
CALLER = os.geteuid()
loading = []
told = set()
ask = gdb.current_objfile
# The object file that a script is for; gdb answers it for its own loading only.
gdb.current_objfile = lambda: loading[-1] if loading else ask()

def named(uid):
    try:
        return "%s (user %d)" % (pwd.getpwuid(uid).pw_name, uid)
    except KeyError:
        return "user %d" % uid

# A group that a trusted owner shares with nobody: what is made with umask 002 is written so.
def is_private(path, known):
    try:
        owner, group = pwd.getpwuid(known.st_uid), grp.getgrgid(known.st_gid)
    except KeyError:
        return False
    if owner.pw_name != group.gr_name or owner.pw_gid != known.st_gid or set(group.gr_mem) - set([owner.pw_name]):
        return False
    try:
        return "system.posix_acl_access" not in os.listxattr(path)
    except (AttributeError, OSError):
        return False

# Why another user could have changed this; empty where none can.
def flaw(path, known, passing):
    if known.st_uid not in (0, CALLER):
        return "%s belongs to %s" % (path, named(known.st_uid))
    # In a folder like /tmp nobody moves what belongs to somebody else.
    if passing and known.st_mode & stat.S_ISVTX:
        return ""
    if known.st_mode & 2 or known.st_mode & 16 and not is_private(path, known):
        return "others can write to %s" % path
    return ""

# The same for all that the kernel meets on the way to a file: folders, links, and itself.
def way(path):
    at, rest, links = "/", [part for part in path.split("/") if part], 0
    why = flaw(at, os.stat(at), True)
    while rest and not why:
        part = rest.pop(0)
        if part == ".":
            continue
        if part == "..":
            at = os.path.dirname(at)
            continue
        after = os.path.join(at, part)
        known = os.lstat(after)
        if stat.S_ISLNK(known.st_mode):
            links += 1
            if links > LINKS_MAX:
                return "%s is behind too many links" % path
            if known.st_uid not in (0, CALLER):
                return "%s belongs to %s" % (after, named(known.st_uid))
            target = os.readlink(after)
            at = "/" if target.startswith("/") else at
            rest = [part for part in target.split("/") if part] + rest
            continue
        at = after
        why = flaw(at, known, len(rest) > 1)
    return why

def value(name):
    try:
        return gdb.parameter(name) or ""
    except (gdb.error, RuntimeError):
        return ""

# The folders of a setting, without those that are no real ones.
def folders(name):
    data = value("data-directory")
    parts = [part.replace("$datadir", data) for part in value(name).split(":")]
    return [os.path.expanduser(part) for part in parts if part and "$" not in part]

# True where a setting of the caller's names it.
def is_named(path):
    for folder in folders("auto-load safe-path"):
        for folder in (folder.rstrip("/"), os.path.realpath(folder).rstrip("/")):
            if path == folder or path.startswith(folder + "/"):
                return True
    return False

# The front-end says it to the user: one line, without anything that steers a terminal.
def refuse(path, why):
    if path not in told:
        told.add(path)
        line = "script %s is not loaded: %s" % (path, why)
        gdb.write("sdm: %s\n" % repr(line)[1:-1], gdb.STDERR)

# Why a script may not be executed for a file that was found by this name; empty where it may.
def doubt(script, known, name):
    if not stat.S_ISREG(known.st_mode):
        return "it is not a file"
    folder = os.path.dirname(script)
    why = "" if is_named(script) else flaw(script, known, False) or way(script)
    # Scripts look for their modules from where the library was found.
    is_known = is_named(script) and (folder == os.path.dirname(name) or is_named(os.path.normpath(name)))
    return why if why or is_known else way(name)

def opened(path):
    return os.fdopen(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY), "rb")

# The content of a file, if it may be executed.
def trusted(path, objfile, bytes_max=SCRIPT_BYTES_MAX):
    real = os.path.realpath(path)
    # It is looked at before it is opened, as that can keep a reader waiting, and again, as it may be another file by then.
    why = doubt(real, os.stat(real), objfile.filename)
    if not why:
        with opened(real) as file:
            why = doubt(real, os.fstat(file.fileno()), objfile.filename)
            if not why:
                return file.read(bytes_max)
    refuse(path, why)
    return None

def run_gdb(text, path):
    gdb.execute(text.decode("utf-8", "replace"))

def run_python(text, path):
    main = sys.modules["__main__"].__dict__
    main["__file__"] = path
    try:
        exec(compile(text, path, "exec"), main)
    finally:
        main.pop("__file__", None)

def load(run, text, path, objfile):
    loading.append(objfile)
    try:
        run(text, path)
    except Exception:
        traceback.print_exc()
    finally:
        loading.pop()

# The entries of a file's .debug_gdb_scripts: a kind, and what it says.
def entries(path):
    with opened(path) as file:
        head = file.read(64)
        if head[:4] != b"\x7fELF" or len(head) < 64:
            return []
        order = "<" if head[5:6] == b"\x01" else ">"
        wide = head[4:5] == b"\x02"
        start = struct.unpack_from(order + ("Q" if wide else "I"), head, 40 if wide else 32)[0]
        size, count, names = struct.unpack_from(order + "HHH", head, 58 if wide else 46)
        form = order + ("IIQQQQ" if wide else "IIIIII")
        if size < struct.calcsize(form):
            return []
        file.seek(start)
        table = file.read(size * count)
        headers = [struct.unpack_from(form, table, at) for at in range(0, len(table) - size + 1, size)]
        if names >= len(headers):
            return []
        file.seek(headers[names][4])
        texts = file.read(min(headers[names][5], SECTION_BYTES_MAX))
        for header in headers:
            if texts[header[0]:].startswith(b".debug_gdb_scripts\0"):
                file.seek(header[4])
                return file.read(min(header[5], SECTION_BYTES_MAX)).split(b"\0")
    return []

def load_section(path, objfile):
    # Several translation units bring the same.
    for entry in sorted(set(entries(path))):
        kind, text = entry[:1], entry[1:]
        if kind == b"\x04" and trusted(path, objfile, 0) is not None:
            name, _, text = text.partition(b"\n")
            load(run_python, text, path, objfile)
        elif kind == b"\x01":
            # A text of Python 2 is bytes.
            name = text if str is bytes else os.fsdecode(text)
            places = [os.getcwd()] + folders("directories")
            paths = [os.path.join(place, name) for place in places]
            for found in [found for found in paths if os.path.exists(found)][:1]:
                text = trusted(found, objfile)
                if text is not None:
                    load(run_python, text, found, objfile)

def load_for(objfile):
    name = objfile.filename or ""
    if not name.startswith("/") or getattr(objfile, "sdm_seen", False):
        return
    objfile.sdm_seen = True
    real = os.path.realpath(name)
    for ending, run in (("-gdb.gdb", run_gdb), ("-gdb.py", run_python)):
        paths = [folder.rstrip("/") + real + ending for folder in [""] + folders("auto-load scripts-directory")]
        for path in [path for path in paths if os.path.exists(path)][:1]:
            text = trusted(path, objfile)
            if text is not None:
                load(run, text, path, objfile)
    if not real.startswith("/usr/"):
        load_section(real, objfile)

def came(event):
    try:
        load_for(event.new_objfile)
    except (EnvironmentError, struct.error):
        pass

gdb.events.new_objfile.connect(came)
