# Prints what gdb shows as an address, or from a wrong address: the objects of references within values and of C++'s
# owning pointers, in Rust what pointers within values, `Vec`, `String` and `Rc` hold, and in Fortran pointers, allocatable
# scalars and polymorphic objects. For Python 2.7 and later.
import gdb, itertools, re, struct

# Deepest nesting of references and pointers that is followed: structures may refer to themselves.
NESTING_MAX = 3
POINTS_MAX = 1 << 48
TEXT_MAX = 4096
ELEMENTS_MAX = 65536
NOT_FOLLOWED = "<not followed>"
NO_TEXT = "<not allocated or associated>"
STAR = re.compile(r"^__class__STAR_[0-9]+_[0-9]+[a-z]*$")
TABLE = re.compile(r"^__(.+)_MOD_(__vtab_.+)$")
INTRINSIC = re.compile(r"^(?:__.+_MOD_)?__vtab_([A-Z]+)_([0-9]+)_")

OWNING = re.compile(r"^std::(?:__[a-z0-9]+::)?(?:unique|shared|weak)_ptr<")
WRAPPER = re.compile(r"^std::(?:__[a-z0-9]+::)?reference_wrapper<")
# The innermost pointers of Rust's library, and pointers to objects of unknown types.
PLACES = re.compile(r"^core::ptr::|.*<dyn ")
HELD = re.compile(r"^alloc::(?:(vec)::Vec<|(string)::String$|rc::Rc<|sync::Arc<)")
# Rust's containers of which gdb shows the inner structure.
CONTAINER = re.compile(r"^(?:std::collections::hash::(?:map|set)::Hash|alloc::collections::(?:btree::(?:map|set)::BTree|vec_deque::Vec|linked_list::Linked))(Map|Set|Deque|List)<")
VALARRAY = re.compile(r"^std::(?:__[a-z0-9]+::)?valarray<")

class Wrong(Exception):
    pass

class Text(object):
    def __init__(self, make):
        self.make = make

    def to_string(self):
        return self.make()

# A `std::valarray`, for which its library has no printer.
class Valarray(object):
    def __init__(self, value):
        self.data, self.count = value["_M_data"], int(value["_M_size"])

    def to_string(self):
        return "std::valarray of length %d" % self.count

    def children(self):
        return (("[%d]" % at, self.data[at]) for at in range(self.count if self.count < POINTS_MAX else 0))

    def display_hint(self):
        return "array"

class Values(gdb.Parameter):
    "Print what references within values refer to, and what pointers of Fortran point to."
    set_doc = show_doc = __doc__

    def __init__(self):
        super(Values, self).__init__("print sdm-references", gdb.COMMAND_DATA, gdb.PARAM_BOOLEAN)
        self.value = False
        self.depth = 0
        self.searching = False

    def get_set_string(self):
        # The printers of a library come before those for all.
        for objfile in gdb.objfiles() if self.value else []:
            if objfile.pretty_printers and self not in objfile.pretty_printers:
                objfile.pretty_printers.insert(0, self)
        return ""

    def __call__(self, value):
        kind = value.type.strip_typedefs()
        if kind.code == gdb.TYPE_CODE_STRUCT and VALARRAY.match(kind.name or "") and "_M_data" in names_of(kind):
            return Valarray(value)
        # gdb 13 dies of these arrays.
        if (kind.code == gdb.TYPE_CODE_ARRAY or is_slice(kind)) and is_tagged(kind):
            return Text(lambda: guarded(tagged, value))
        if is_enum(kind) and value.address is None:
            return Text(lambda: guarded(unplaced, value))
        if kind.code == gdb.TYPE_CODE_STRUCT and STAR.match(kind.name or "") and not self.value:
            return Text(lambda: "( _data = (...), _vptr = %s )" % raw(value["_vptr"]))
        if not self.value or self.searching:
            return None
        if kind.code == gdb.TYPE_CODE_STRUCT and OWNING.match(kind.name or ""):
            return Text(lambda: guarded(owning, value))
        if kind.code == gdb.TYPE_CODE_STRUCT and WRAPPER.match(kind.name or ""):
            pointers = [field for field in kind.fields() if field.type.strip_typedefs().code == gdb.TYPE_CODE_PTR]
            show = lambda it: pointed(it[pointers[0]], owned)
            return Text(lambda: "%s = {get() = %s}" % (kind.name, guarded(show, value)))
        if kind.code in (gdb.TYPE_CODE_REF, getattr(gdb, "TYPE_CODE_RVALUE_REF", None)):
            return Text(lambda: nested(value, lambda it: plain(whole(it.referenced_value())))) if self.depth < NESTING_MAX else None
        language = current_language() if is_composite(kind) else ""
        if language == "fortran":
            return Text(lambda: guarded(fortran, value))
        if language == "rust" and kind.code == gdb.TYPE_CODE_PTR and self.depth < NESTING_MAX and int(value) != 0:
            return Text(lambda: nested(value, lambda it: plain(it.dereference())))
        if language == "rust" and (HELD.match(kind.name or "") or PLACES.match(kind.name or "")):
            return Text(lambda: guarded(rust, value))
        if language == "rust" and CONTAINER.match(kind.name or ""):
            return Text(lambda: guarded(container, value))
        return None

values = Values()

# From gdb 14 on a command within a printer loses what is printed already; since then there is a function for it.
def current_language():
    if hasattr(gdb, "current_language"):
        return gdb.current_language()
    known = re.search(r'([a-z+-]+)"', gdb.execute("show language", to_string=True))
    return known.group(1) if known else ""

def is_fortran():
    return current_language() == "fortran"

# True for a Fortran value that gdb's own printing may show wrong.
def is_composite(kind):
    if kind.code == gdb.TYPE_CODE_PTR:
        return is_followed(kind)
    return kind.code == gdb.TYPE_CODE_STRUCT or kind.code == gdb.TYPE_CODE_ARRAY and is_composite(element_of(kind))

def element_of(kind):
    while kind.code == gdb.TYPE_CODE_ARRAY:
        kind = kind.target().strip_typedefs()
    return kind

def is_followed(kind):
    return kind.target().strip_typedefs().code not in (gdb.TYPE_CODE_FUNC, gdb.TYPE_CODE_VOID)

def names_of(kind):
    return [field.name for field in kind.fields()]

# True for a slice of Rust, or a box of one.
def is_slice(kind):
    is_named = kind.code == gdb.TYPE_CODE_STRUCT and re.match(r"^(?:&|alloc::boxed::Box<\[)", kind.name or "")
    return bool(is_named) and names_of(kind) == ["data_ptr", "length"]

# True for an enum of Rust with data whose variant gdb has not determined.
def is_enum(kind):
    is_open = kind.code == gdb.TYPE_CODE_STRUCT and kind.dynamic and None in names_of(kind)
    return is_open and current_language() == "rust"

# gdb 13 dies of an enum that is not in memory, as one that a function returns.
def unplaced(value):
    raise Wrong("this gdb determines the variant of %s only in memory" % value.type.name)

# True for an array or a slice of Rust whose elements have a tag, as those of an enum with data.
def is_tagged(kind):
    element = element_of(kind.fields()[0].type.target().strip_typedefs() if is_slice(kind) else kind)
    return element.code == gdb.TYPE_CODE_STRUCT and element.dynamic and current_language() == "rust"

def tagged(value):
    if hasattr(gdb, "print_options") and gdb.print_options().get("summary"):
        return "..."
    kind = value.type.strip_typedefs()
    if is_slice(kind):
        return "%s %s" % (kind.name, each(value["data_ptr"], int(value["length"])))
    low, high = kind.range()
    return each(value, high + 1 - low)

def raw(value):
    return value.format_string(raw=True)

def plain(value, **options):
    known = gdb.print_options() if hasattr(gdb, "print_options") else {}
    if "format" in known:
        options["format"] = known["format"]
    return value.format_string(**options)

def guarded(show, *value):
    try:
        return show(*value)
    except Wrong as error:
        return "<error: %s>" % error
    except Exception as error:
        return "<error reading variable: %s>" % error

def nested(value, show):
    values.depth += 1
    try:
        return guarded(show, value)
    finally:
        values.depth -= 1

# An owning pointer of C++ as its library's printer shows it, with the object in place of its address.
def owning(value):
    values.searching = True
    try:
        printer = gdb.default_visualizer(value)
    finally:
        values.searching = False
    if printer is None:
        return raw(value)
    children = printer.children() if hasattr(printer, "children") else []
    is_array = value.type.strip_typedefs().template_argument(0).strip_typedefs().code == gdb.TYPE_CODE_ARRAY
    show = (lambda it: NOT_FOLLOWED) if is_array else owned
    shown = ["%s = %s" % (name, guarded(pointed, it, show)) for name, it in children]
    return "%s = {%s}" % (printer.to_string(), ", ".join(shown)) if shown else printer.to_string()

def owned(pointer):
    if not is_followed(pointer.type.strip_typedefs()):
        return raw(pointer)
    return plain(whole(pointer.dereference()))

# The whole object of a class, of which the type of a pointer or a reference may know a part.
def whole(value):
    return value.cast(value.dynamic_type) if value.type.strip_typedefs().code == gdb.TYPE_CODE_STRUCT else value

# The values in a container or a counted object of Rust's library.
def rust(value):
    held, data = HELD.match(value.type.name), None
    if held and "dyn " not in value.type.name:
        vector = value["vec"] if held.group(2) else value
        data = first_pointer(vector)
    if data is None or not is_followed(data.type.strip_typedefs()):
        return raw(value)
    if not held.group(1) and not held.group(2):
        member = "data" if value.type.name.startswith("alloc::sync") else "value"
        return pointed(data, lambda it: plain(it.dereference()[member]))
    count = int(vector["len"])
    if not 0 <= count < POINTS_MAX:
        raise Wrong("%d elements" % count)
    if held.group(1):
        kind = vector.type.template_argument(0)
        if kind.strip_typedefs().code == gdb.TYPE_CODE_STRUCT:
            return each(data.cast(kind.pointer()), count)
        return plain(data.cast(kind.array(count - 1).pointer()).dereference()) if count else "[]"
    most = gdb.parameter("print elements") or POINTS_MAX
    read = bytearray(gdb.selected_inferior().read_memory(int(data), min(count, most))) if count else b""
    shown = [chr(it) if 32 <= it < 127 and it not in (34, 92) else "\\%03o" % it for it in read]
    return '"%s"%s' % ("".join(shown), "..." if count > most else "")

# Elements of Rust, each by itself: gdb 13 dies of an array of enums with data.
def each(first, count):
    most = gdb.parameter("print elements") or POINTS_MAX
    shown = [guarded(plain, first[at]) for at in range(min(count, most))]
    return "[%s%s]" % (", ".join(shown), "..." if count > most else "")

# The elements of a container of Rust, those without an order of their own in that of their texts.
def container(value):
    what, most = CONTAINER.match(value.type.strip_typedefs().name).group(1), gdb.parameter("print elements") or POINTS_MAX
    table, tree = below(value, "table"), below(value, "root")
    if what in ROWS:
        found, count = ROWS[what](value), int(value["len"])
    else:
        found = hashed(table) if table is not None else tree_of(tree, int(below(value, "length")))
        count = int(below(table, "items")) if table is not None else int(below(value, "length"))
    if not 0 <= count < POINTS_MAX:
        raise Wrong("%d elements" % count)
    entry = lambda it: (guarded(plain, it[0]), guarded(plain, it[1]) if what == "Map" else None)
    if table is None:
        shown = [entry(it) for it in itertools.islice(found, min(count, most))]
    else:
        shown = sorted((entry(it) for it in itertools.islice(found, ELEMENTS_MAX)), key=lambda it: in_order(it[0]))[:most]
    texts = ["[%s] = %s" % it if what == "Map" else it[0] for it in shown]
    form = "[%s%s]" if what in ROWS else "{%s%s}"
    return form % (", ".join(texts), "..." if len(shown) < count else "")

def in_order(text):
    try:
        return (0, float(text), text)
    except ValueError:
        return (1, 0, text)

# A member of a structure, or of one within it.
def below(value, name):
    kind = value.type.strip_typedefs()
    for field in kind.fields() if kind.code == gdb.TYPE_CODE_STRUCT and not kind.dynamic else []:
        found = value[field] if field.name == name else below(value[field], name)
        if found is not None:
            return found
    return None

# The entries of a hash table, which lie before its bytes of control.
def hashed(table):
    control, count = int(first_pointer(below(table, "ctrl"))), int(below(table, "bucket_mask")) + 1
    kind = table.type.strip_typedefs().template_argument(0)
    if not 0 < count < POINTS_MAX:
        raise Wrong("a table of %d entries" % count)
    used = bytearray(gdb.selected_inferior().read_memory(control, count))
    entries = gdb.Value(control).cast(kind.pointer())
    first, second = kind.strip_typedefs().fields()
    return ((entries[-1 - at][first], entries[-1 - at][second]) for at in range(count) if used[at] < 128)

def ring(deque):
    kind = deque.type.strip_typedefs().template_argument(0)
    head, size = int(deque["head"]), number_in(below(deque["buf"], "cap"))
    first = gdb.Value(int(first_pointer(below(deque["buf"], "ptr")))).cast(kind.pointer())
    return ((first[(head + at) % size], None) for at in range(int(deque["len"])))

# The elements of a list. Its pointers are within enums, whose form gdb 13 does not need: a null pointer means none.
def chain(linked):
    pointer = linked["head"]
    while True:
        node = first_pointer(pointer.cast(gdb.lookup_type(pointer.type.name[len("core::option::Option<"):-1])))
        if int(node) == 0:
            return
        yield node["element"], None
        pointer = node["next"]

ROWS = {"Deque": ring, "List": chain}

# The number that structures of one member hold.
def number_in(value):
    kind = value.type.strip_typedefs()
    return number_in(value[kind.fields()[0]]) if kind.code == gdb.TYPE_CODE_STRUCT else int(value)

# The entries of a tree. Its root is within an enum, whose form gdb 13 does not need: a null pointer means none.
def tree_of(root, count):
    if count == 0:
        return
    node = root.cast(gdb.lookup_type(root.type.name[len("core::option::Option<"):-1]))
    leaf = first_pointer(node["node"])
    inner = gdb.lookup_type(leaf.type.target().name.replace("LeafNode<", "InternalNode<", 1)).pointer()
    is_set = leaf.type.target().template_argument(1).sizeof == 0
    def held(it):
        while re.match(r"^core::mem::ma", it.type.name or ""):
            it = it[it.type.fields()[-1]]
        return it
    def entries(leaf, height):
        keys, found, used = leaf["keys"], leaf["vals"], int(leaf["len"])
        for at in range(used + 1):
            if height > 0:
                for entry in entries(first_pointer(held(leaf.cast(inner)["edges"][at])), height - 1):
                    yield entry
            if at < used:
                yield held(keys[at]), None if is_set else held(found[at])
    for entry in entries(leaf, int(node["height"])):
        yield entry

# The only pointer of a Rust structure; None for one with a length or a table behind it.
def first_pointer(value):
    for field in value.type.strip_typedefs().fields():
        kind = field.type.strip_typedefs()
        if kind.code == gdb.TYPE_CODE_PTR:
            return value[field] if len(value.type.strip_typedefs().fields()) < 2 or field.name == "pointer" else None
        found = first_pointer(value[field]) if kind.code == gdb.TYPE_CODE_STRUCT else None
        if found is not None:
            return found
    return None

def fortran(value):
    kind = value.type.strip_typedefs()
    if kind.code == gdb.TYPE_CODE_PTR and is_followed(kind):
        return pointed(value, lambda it: fortran(target(it)))
    if kind.code == gdb.TYPE_CODE_ARRAY and is_composite(kind):
        return array(value)
    if kind.code != gdb.TYPE_CODE_STRUCT:
        return plain(value)
    if is_class(kind):
        return polymorphic(value)
    lengths = set(field.name for field in kind.fields())
    members = []
    for field in kind.fields():
        name, length = field.name, "_%s_length" % field.name
        if length in lengths:
            text = guarded(lambda it: pointed(it, lambda it: plain(characters(it, int(value[length])))), value[name])
            text = NO_TEXT if text == "0x0" else text
        elif is_length(name, lengths):
            continue
        else:
            text = guarded(lambda it: fortran(placed(it, field)), value)
        members.append("%s = %s" % (name, text))
    return "( %s )" % ", ".join(members)

# True for the hidden length of a text, which is undefined while there is no text.
def is_length(name, names):
    return name.startswith("_") and name.endswith("_length") and name[1:-len("_length")] in names

# The target of a pointer, by `show`; a null pointer as gdb shows it, unless it is that of a text in Fortran.
def pointed(value, show):
    if int(value) == 0:
        return NO_TEXT if is_characters(value.type.strip_typedefs().target().strip_typedefs()) else "0x0"
    return NOT_FOLLOWED if values.depth >= NESTING_MAX else nested(value, show)

def target(value):
    found = value.dereference()
    if found.type.strip_typedefs().sizeof == 0:
        raise Wrong("the length of this text is unknown; with (1:80) its first 80 characters are read")
    return found

def characters(value, length):
    if not 0 <= length < POINTS_MAX:
        raise Wrong("a text of %d characters" % length)
    return value.cast(gdb.lookup_type("character").array(1, length).pointer()).dereference()

# The elements of an array, each by itself: gdb 13 shows the allocatable components of the first one in all. With a
# negative stride also single elements are wrong. `show` makes the text of the element at an address.
def array(value, show=None):
    shown = value.format_string(raw=True, max_elements=1, repeat_threshold=0)
    if shown.startswith("<"):
        return shown
    return elements(value, show, [gdb.parameter("print elements") or POINTS_MAX])

def elements(value, show, left):
    bounds = bounds_of(value)
    lowest = int(value.address) if in_memory(value) else None
    def row(subscripts):
        if len(subscripts) == len(bounds):
            left[0] -= 1
            element = at(lowest, value.type, bounds, subscripts) if lowest else within(value, subscripts)
            return guarded(show, element.address) if show else guarded(fortran, element)
        low, high, _ = bounds[-1 - len(subscripts)]
        shown, apart = [], ", " if len(subscripts) == len(bounds) - 1 else " "
        for subscript in range(low, high + 1):
            if left[0] <= 0:
                return "(%s...)" % apart.join(shown + [""])
            shown.append(row([subscript] + subscripts))
        return "(%s)" % apart.join(shown)
    return row([])

# The elements of an array of class(*), by `show`.
def untyped(value, length, show):
    base, span, dimensions = description(value, length)
    if base == 0:
        return "<not allocated>"
    kind = gdb.lookup_type("character").pointer()
    left = [gdb.parameter("print elements") or POINTS_MAX]
    def row(at, address):
        if at < 0:
            left[0] -= 1
            return guarded(show, gdb.Value(address).cast(kind))
        stride, low, high = dimensions[at]
        shown, apart = [], ", " if at == 0 else " "
        for further in range(max(0, high - low + 1)):
            if left[0] <= 0:
                return "(%s...)" % apart.join(shown + [""])
            shown.append(row(at - 1, address + further * stride * span))
        return "(%s)" % apart.join(shown)
    return row(len(dimensions) - 1, base)

# The first address, the distance of elements, and each dimension's stride, low and high bound of an array of class(*),
# by gfortran's description of it: gdb takes its elements for addresses, and gdb 18 reads none that is smaller.
def description(value, length):
    if value.address is None:
        raise Wrong("an array of class(*) that is not in memory")
    begin, memory = int(value.address), gdb.selected_inferior()
    base, _, _, _, rank, _, _, span = struct.unpack("=QqQiBbhq", bytes(memory.read_memory(begin, 40)))
    # In an array of components a span is that of a whole structure.
    if base and not (int(value["_vptr"]["_size"]) * max(1, length) <= span < POINTS_MAX and 0 < rank <= 15):
        raise Wrong("an array of class(*) in an unknown form")
    dimensions = [memory.read_memory(begin + 40 + 24 * at, 24) for at in range(rank if base else 0)]
    return base, span, [struct.unpack("=qqq", bytes(it)) for it in dimensions]

# An object of a class by the type that it has, which its `_vptr` names.
def polymorphic(value):
    table, data = value["_vptr"], value["_data"]
    symbol, length = symbol_of(table), length_of(value)
    shown = "_vptr = " + ("<%s>" % symbol if symbol else raw(table))
    object_at = lambda address: dynamic(address, symbol, table, length)
    if not is_array(data.type):
        text = guarded(lambda it: pointed(it, object_at), data)
    elif is_untyped(data.type):
        text = guarded(lambda it: untyped(it, length, object_at), value)
    else:
        text = guarded(lambda it: array(it, object_at), data)
    return "( _data = %s, %s )" % (text, shown)

# The length of the text that a class(*) holds.
def length_of(value):
    return int(value["_len"]) if "_len" in [field.name for field in value.type.strip_typedefs().fields()] else 0

# The symbol at which a pointer points. From gdb 14 on a command within a printer has the form of MI.
def symbol_of(pointer):
    known = re.search(r"<([^\s+>]+)>$", pointer.format_string(raw=True, symbols=True))
    return known.group(1) if known else ""

# The text of the object of a class at an address.
def dynamic(address, symbol, table, length):
    known = INTRINSIC.match(symbol)
    if not known or known.group(1) != "COMPLEX":
        return fortran(typed(address, symbol, table, length))
    first = address.cast(gdb.lookup_type("real(kind=%s)" % known.group(2)).pointer())
    return "(%s,%s)" % (plain(first.dereference()), plain((first + 1).dereference()))

# The object of a class at an address, with the type that it has.
def typed(address, symbol, table, length):
    known = INTRINSIC.match(symbol)
    if not known:
        return address.cast(dynamic_type(symbol, table).pointer()).dereference()
    name, size = known.groups()
    if name == "CHARACTER":
        return comparable(characters(address, length))
    if name == "COMPLEX":
        raise Wrong("gdb has no type for this complex number; as a whole it is shown")
    return address.cast(gdb.lookup_type("%s(kind=%s)" % (name.lower(), size)).pointer()).dereference()

# The type whose table a symbol is. Two types can have one name, so the address has to be the same.
def dynamic_type(symbol, table):
    known = TABLE.match(symbol)
    name = "%s::%s" % known.groups() if known else symbol.split(".")[0]
    found = [gdb.lookup_symbol(name)[0]] if name else []
    if not known:
        found += gdb.lookup_static_symbols(name) if hasattr(gdb, "lookup_static_symbols") else []
    for one in found:
        if one is not None and int(one.value().address) == int(table):
            kind = [field.type for field in one.type.strip_typedefs().fields() if field.name == "_def_init"]
            return kind[0].target()
    raise Wrong("the type of this object is unknown: %s" % (symbol or raw(table)))

gdb.pretty_printers.append(values)
