# Functions for gdb's expressions: in Fortran, whose names SDM puts functions around, and for parts without a name.
import itertools

# Bytes of a character of kind 4.
WIDE = 4

class Function(gdb.Function):
    "A function of Fortran expressions. Its errors have gdb's own form, without a trace of Python."

    def __init__(self, name, work):
        super(Function, self).__init__("_sdm_" + name)
        self.work = work

    def invoke(self, *values):
        try:
            return self.work(*values)
        except (Wrong, gdb.error) as error:
            raise gdb.GdbError(str(error))

# The target of a Fortran pointer or allocatable scalar, and any other value itself.
def held(value):
    kind = value.type.strip_typedefs()
    if not is_fortran():
        return value
    if kind.code == gdb.TYPE_CODE_PTR and is_followed(kind):
        return comparable(target(known(value)))
    if is_class(kind) and not is_array(value["_data"].type) and not is_followed(value["_data"].type.strip_typedefs()):
        return comparable(object_of(value, known(value["_data"])))
    return comparable(value) if is_text(kind) else value

def known(pointer):
    if int(pointer) == 0:
        raise Wrong("a pointer is not associated, or a variable is not allocated")
    return pointer

def is_array(kind):
    return kind.strip_typedefs().code == gdb.TYPE_CODE_ARRAY

def is_class(kind):
    return kind.code == gdb.TYPE_CODE_STRUCT and [field.name for field in kind.fields()[:2]] == ["_data", "_vptr"]

# A component of a structure by its plain name: also one of a class, of a parent type, and of the type that the object
# of a class has. By an empty name the data of a class, and any other value itself.
def part(value, name):
    name = literal(name).strip()
    if not name:
        return value["_data"] if is_class(value.type.strip_typedefs()) else value
    structure, field = located(value, name)
    if name == "_data" and is_array(field.type) and is_untyped(field.type):
        raise Wrong("gdb does not know the elements of an array of class(*); without %_data they are shown")
    length = "_%s_length" % name
    found = placed(structure, field)
    names = [it.name for it in structure.type.strip_typedefs().fields()]
    if length in names and not is_array(found.type) and int(found) != 0:
        return comparable(characters(found, int(structure[length])))
    return found

# The structure that has a component itself, and the field of that.
def located(value, name):
    kind = value.type.strip_typedefs()
    if kind.code == gdb.TYPE_CODE_PTR:
        value = known(value).dereference()
        kind = value.type.strip_typedefs()
    found = member(value, name)
    if not found and is_class(kind) and not is_array(value["_data"].type):
        data = known(value["_data"])
        found = member(data.dereference(), name) if is_followed(data.type.strip_typedefs()) else None
        found = found or member(object_of(value, data), name)
    if found:
        return found
    if kind.code == gdb.TYPE_CODE_STRUCT and not (is_class(kind) and is_array(value["_data"].type)):
        raise Wrong("There is no member named %s." % name)
    raise Wrong("Attempt to extract a component of a value that is not a structure.")

def is_untyped(kind):
    kind = element_of(kind.strip_typedefs())
    return kind.code == gdb.TYPE_CODE_PTR and not is_followed(kind)

def member(value, name):
    kind = value.type.strip_typedefs()
    fields = kind.fields() if kind.code == gdb.TYPE_CODE_STRUCT else []
    for field in fields:
        if field.name == name:
            return value, field
    # The component for a parent type has its name.
    first = fields[0] if fields else None
    if first and first.type.strip_typedefs().code == gdb.TYPE_CODE_STRUCT and first.name == first.type.name:
        return member(value[first.name], name)
    return None

# The object of a class, with the type that it has.
def object_of(value, address):
    return typed(address, symbol_of(value["_vptr"]), value["_vptr"], length_of(value))

# The object of a class with the type that it has, and any other value itself.
def instance(value):
    is_object = is_class(value.type.strip_typedefs()) and not is_array(value["_data"].type)
    return object_of(value, known(value["_data"])) if is_object else value

# A section of an array or a text. In its form each subscript is a `#`: `#:#,#`. gdb itself counts from the wrong end
# where a stride is negative, so that there the section is one of a copy.
def section(value, name, form, *subscripts):
    value, described = chosen(value, name if literal(name).strip() else None)
    data = value["_data"] if is_class(value.type.strip_typedefs()) else value
    kind = data.type.strip_typedefs()
    if kind.code == gdb.TYPE_CODE_PTR and is_followed(kind):
        data = target(known(data))
    form, given = literal(form), iter(subscripts)
    text = "".join(str(int(next(given))) if it == "#" else it for it in form)
    name = ranked(data) if is_array(data.type) else None
    if name:
        return part_of_ranked(name, data, text)
    if is_array(data.type) and not is_text(data.type.strip_typedefs()):
        data = ended(data, text)
        lowest, bounds = described or (data.address, bounds_of(data))
        if any(stride < 0 for _, _, stride in bounds):
            if not described and not text.strip(":,") and is_dynamic(element_of(data.type.strip_typedefs())):
                return data
            parts = text.split(",")
            if len(parts) != len(bounds):
                raise Wrong("Wrong number of subscripts")
            picked = [subscripts_of(it, *bound) for it, bound in zip(parts, bounds)]
            shape = [(1, len(it)) for it, part in zip(picked, parts) if ":" in part]
            return copied(data, int(lowest), bounds, picked, shape)
    is_place = in_memory(data)
    gdb.set_convenience_variable("sdm_array", data.address if is_place else data)
    return gdb.parse_and_eval("%s(%s)" % ("(*$sdm_array)" if is_place else "$sdm_array", text))

# An array of assumed size, `a(*)`, as one that ends where its section does.
def ended(data, text):
    kind, last = data.type.strip_typedefs(), (text.split(",")[-1] + "::1").split(":")
    if not str(kind).endswith("*)"):
        return data
    end = last[0] if ":" not in text.split(",")[-1] or last[2].startswith("-") else last[1]
    if not end:
        raise Wrong("the size of this array is unknown: a section of it needs an end, as in (1:10)")
    ranges = []
    while is_array(kind) and not is_text(kind):
        ranges.append(kind.range())
        kind = kind.target().strip_typedefs()
    for low, high in ranges[:0:-1] + [(ranges[0][0], int(end))]:
        kind = kind.array(low, high)
    return data.address.cast(kind.pointer()).dereference()

# The subscripts of a part of a section.
def subscripts_of(part, low, high, _):
    ends = part.split(":")
    step = int(ends[2]) if len(ends) > 2 and ends[2] else 1
    ends = [int(end) if end else other for end, other in zip(ends * 2, (low, high) if step > 0 else (high, low))]
    if any(not low <= it <= high for it in ends) or step == 0:
        raise Wrong("array subscript out of bounds")
    return list(range(ends[0], ends[1] + (1 if step > 0 else -1), step))

def chosen(value, name):
    if name is None:
        return value, None
    structure, field = located(value, literal(name))
    described = described_by(structure, field)
    return (structure[field.name] if described else part(value, name)), described

# An element of an array, or the value of a function, whose call looks the same. gdb itself counts the elements of an
# array with a negative stride from the wrong end, and knows none of class(*). It has to know the type of subscripts
# behind a function beforehand, so they are its arguments.
def item(value, *subscripts):
    described = None
    if subscripts and is_characters(subscripts[0].type.strip_typedefs()) and is_owner(value):
        value, described = chosen(value, subscripts[0])
        subscripts = subscripts[1:]
    kind, data = value.type.strip_typedefs(), value
    if kind.code == gdb.TYPE_CODE_PTR and is_characters(kind.target().strip_typedefs()):
        value = data = known(value).dereference()
        kind = value.type.strip_typedefs()
    if kind.code == gdb.TYPE_CODE_FUNC or kind.code == gdb.TYPE_CODE_PTR and not is_followed(kind):
        return called(value, subscripts)
    subscripts = [int(it) for it in subscripts]
    if is_characters(kind) and len(subscripts) == 1 and 0 < subscripts[0] <= length_in(kind):
        return (value.address.cast(kind.target().pointer()) + (subscripts[0] - 1)).dereference()
    if is_class(kind) and is_array(value["_data"].type):
        data = value["_data"]
        if is_untyped(data.type):
            return element_of_untyped(value, subscripts)
        described = described_by(value, kind.fields()[0])
    if not is_array(data.type):
        raise Wrong("Cannot perform substring on this type")
    name = ranked(data)
    if name:
        return part_of_ranked(name, data, ", ".join(str(it) for it in subscripts))
    if not in_memory(data) and element_of(data.type.strip_typedefs()).code == gdb.TYPE_CODE_STRUCT:
        raise Wrong("gdb may read parts of this array wrong, as it is a copy of unknown stride")
    lowest, bounds = described or (data.address, bounds_of(data))
    if len(subscripts) != len(bounds):
        raise Wrong("Wrong number of subscripts")
    for (low, high, _), subscript in zip(bounds, subscripts):
        # An array of assumed size has no end.
        if subscript < low or low <= high < subscript:
            raise Wrong("no such vector element")
    is_plain = all(stride >= 0 for _, _, stride in bounds)
    element = within(data, subscripts) if is_plain else at(int(lowest), data.type, bounds, subscripts)
    if is_class(kind):
        try:
            element = object_of(value, element.address)
        except Wrong:
            pass
    return element

# True for a structure, a pointer to one, and a class.
def is_owner(value):
    kind = value.type.strip_typedefs()
    return (kind.target().strip_typedefs() if kind.code == gdb.TYPE_CODE_PTR else kind).code == gdb.TYPE_CODE_STRUCT

# Calls a function of the program, with its arguments by reference.
def called(function, arguments):
    is_pointer = function.type.strip_typedefs().code == gdb.TYPE_CODE_PTR
    gdb.set_convenience_variable("sdm_function", function if is_pointer else function.address)
    words = []
    for at, argument in enumerate(arguments):
        is_place = in_memory(argument) and argument.address is not None
        gdb.set_convenience_variable("sdm_%d" % at, argument.address if is_place else argument)
        words.append("%s$sdm_%d" % ("*" if is_place else "", at))
    return gdb.parse_and_eval("$sdm_function(%s)" % ", ".join(words))

def element_of_untyped(value, subscripts):
    address, span, dimensions = description(value, length_of(value))
    if len(subscripts) != len(dimensions):
        raise Wrong("parts of an array of class(*) are single elements")
    for (stride, low, high), subscript in zip(dimensions, subscripts):
        if not low <= subscript <= high:
            raise Wrong("no such vector element")
        address += (subscript - low) * stride * span
    return object_of(value, gdb.Value(address).cast(gdb.lookup_type("character").pointer()))

# The name of a dummy argument of assumed rank; None for any other array. gdb 13 reads each row of such an array as one
# with a description of its own, and dies of a pointer to it. Elements and sections of the argument itself are right.
def ranked(array):
    kind = array.type.strip_typedefs()
    row = kind.target().strip_typedefs()
    if not (is_array(row) and row.dynamic) or element_of(row).dynamic:
        return None
    block = gdb.selected_frame().block()
    while block.function is None:
        block = block.superblock
    for symbol in block:
        if symbol.is_argument and is_array(symbol.type) and symbol.value(gdb.selected_frame()).address == array.address:
            return symbol.name
    return None

# A part of an argument of assumed rank, whose bounds its type has, the first dimension first.
def part_of_ranked(name, array, text):
    row, lows = array.type.strip_typedefs(), []
    while row.code == gdb.TYPE_CODE_ARRAY:
        lows.insert(0, row.range()[0])
        row = row.target().strip_typedefs()
    def address(further=None):
        return int(gdb.parse_and_eval("&%s(%s)" % (name, ",".join(str(low + (at == further)) for at, low in enumerate(lows)))))
    if any(not 0 <= address(at) - address() < POINTS_MAX for at in range(len(lows))):
        raise Wrong("gdb reads parts of this array wrong, as it has a negative stride")
    return gdb.parse_and_eval("%s(%s)" % (name, text))

# The bounds and the stride in bytes of each dimension of an array, the first one first.
def bounds_of(array):
    is_place = in_memory(array)
    row, found = lazy(array) if is_place else array, []
    while is_array(row.type) and not is_text(row.type.strip_typedefs()):
        first, last = row.type.strip_typedefs().range()
        below = row[first]
        is_known = is_place and last > first
        found.insert(0, (first, last, int(row[first + 1].address) - int(below.address) if is_known else 0))
        row = below
    return found

# False for a copy of gdb's own. The address of an array of such would be that of a copy in the program's memory.
def in_memory(array):
    while is_array(array.type):
        array = array[array.type.strip_typedefs().range()[0]]
    return array.address is not None

def within(array, subscripts):
    for subscript in reversed(subscripts):
        array = array[subscript]
    return array

def lazy(value):
    return value.address.cast(value.type.pointer()).dereference()

# An element of an array with this lowest address.
def at(lowest, kind, bounds, subscripts):
    for (low, high, stride), subscript in zip(bounds, subscripts):
        lowest += (subscript - (low if stride >= 0 else high)) * stride
    return gdb.Value(lowest).cast(element_of(kind.strip_typedefs()).pointer()).dereference()

# The lowest address and the bounds of a component with a negative stride, by gfortran's description of it; None for
# another one. gdb moves the place of such an array once more each time that it looks at the structure.
def described_by(structure, field):
    found = structure[field.name]
    if structure.address is None or not is_array(found.type) or is_text(found.type.strip_typedefs()):
        return None
    if not allocated(found):
        return None
    bounds = bounds_of(found)
    if all(stride >= 0 for _, _, stride in bounds):
        return None
    size = element_of(found.type.strip_typedefs()).sizeof
    begin, memory = int(structure.address) + field.bitpos // 8, gdb.selected_inferior()
    base, _, length, _, rank, _, _, span = struct.unpack("=QqQiBbhq", bytes(memory.read_memory(begin, 40)))
    known = []
    for dimension in range(len(bounds)):
        stride, low, high = struct.unpack("=qqq", bytes(memory.read_memory(begin + 40 + 24 * dimension, 24)))
        known.append((low, high, stride * span))
    if rank != len(bounds) or length != size or [it[:2] for it in known] != [it[:2] for it in bounds]:
        raise Wrong("an array with a negative stride in an unknown form")
    return base + sum((high - low) * stride for low, high, stride in known if stride < 0), known

# A component, as a copy if gdb takes it to be elsewhere.
def placed(structure, field):
    found, described = structure[field.name], described_by(structure, field)
    if not described or int(found.address) == described[0]:
        return found
    return copied(found, *described)

# A copy without strides of an array, or of these subscripts of it, which has the bounds of `shape`.
def copied(array, lowest, bounds, picked=None, shape=None):
    kind = element_of(array.type.strip_typedefs())
    picked = picked or [list(range(low, high + 1)) for low, high, _ in bounds]
    positions, size = [[]], 1
    for each in reversed(picked):
        size *= len(each)
        if size > ELEMENTS_MAX or is_dynamic(kind):
            raise Wrong("gdb reads this array wrong, as it has a negative stride; its elements are right")
        positions = [[it] + rest for rest in positions for it in each]
    if not positions:
        raise Wrong("a section without elements")
    memory, content = gdb.selected_inferior(), b""
    for subscripts in positions:
        content += bytes(memory.read_memory(int(at(lowest, array.type, bounds, subscripts).address), kind.sizeof))
    for low, high in shape or [bound[:2] for bound in bounds]:
        kind = kind.array(low, high)
    return gdb.Value(content, kind)

# True for a type with parts elsewhere in memory, which a copy does not have.
def is_dynamic(kind):
    kind = kind.strip_typedefs()
    if kind.code == gdb.TYPE_CODE_STRUCT:
        return any(is_dynamic(field.type) for field in kind.fields())
    return kind.dynamic or kind.code == gdb.TYPE_CODE_PTR or kind.code == gdb.TYPE_CODE_ARRAY and is_dynamic(kind.target())

# In gdb's sizeof a function is not called.
def sizeof(value):
    return value.type.sizeof

def allocated(value):
    if value.type.strip_typedefs().code == gdb.TYPE_CODE_PTR:
        return int(value) != 0
    return not value.format_string(raw=True, max_elements=1).startswith("<not ")

# True if a text and a quoted one are the same in Fortran, where blanks at the end do not count. As one function, since
# gdb examines `==` with the type of each operand before it calls functions.
def same(value, quoted):
    value = comparable(value)
    kind = value.type.strip_typedefs()
    if not is_characters(kind):
        return value == quoted
    text = content(quoted).rstrip(" ")
    if is_wide(kind):
        return content(value).rstrip(" ") == text
    return value == quote(text.ljust(kind.sizeof)) if kind.sizeof else not text

def is_characters(kind):
    return kind.code == gdb.TYPE_CODE_STRING or is_text(kind)

# True for a text of kind 4, whose characters have four bytes each.
def is_wide(kind):
    return is_text(kind) and kind.target().sizeof == WIDE

def length_in(kind):
    return kind.sizeof // WIDE if is_wide(kind) else kind.sizeof

def content(value):
    if not is_wide(value.type.strip_typedefs()):
        return literal(value)
    places = (value[at + value.type.range()[0]] for at in range(length_in(value.type)))
    return "".join(chr(int(it)) for it in places)

def literal(quoted):
    return quoted.format_string(max_elements=0, repeat_threshold=0)[1:-1]

def quote(text):
    return gdb.parse_and_eval("'%s'" % text)

# gdb takes some texts for arrays, which it does not compare.
def is_text(kind):
    return kind.code == gdb.TYPE_CODE_ARRAY and kind.target().strip_typedefs().code == gdb.TYPE_CODE_CHAR

def comparable(value):
    kind = value.type.strip_typedefs()
    if not is_text(kind) or is_wide(kind) or value.address is None or not 0 < kind.sizeof <= TEXT_MAX:
        return value
    return value.address.cast(quote("x" * kind.sizeof).type.pointer()).dereference()

# The value to assign: a text of which the end is cut or padded, as Fortran does. The name is that of a variable, or of
# a component of a structure. Only Fortran itself can give a text of deferred length another one.
def fitting(target, value, name=None, structure=None):
    target = held(target)
    kind, given = target.type.strip_typedefs(), value.type.strip_typedefs()
    if not is_characters(kind) or not is_characters(given):
        return value
    sizes = (length_in(kind), length_in(given))
    if sizes[0] == sizes[1] and is_wide(kind) == is_wide(given):
        return value
    if name is not None and is_deferred(literal(name), structure):
        raise Wrong("this text of deferred length has %d characters, and gdb cannot give it %d" % sizes)
    if max(sizes) > TEXT_MAX:
        raise Wrong("a text of more than %d characters" % TEXT_MAX)
    text = content(value)[:sizes[0]].ljust(sizes[0])
    if is_wide(kind):
        return gdb.Value(struct.pack("=%dI" % len(text), *map(ord, text)), kind)
    return quote(text) if text else value

def is_deferred(name, structure):
    if structure is None:
        symbol = gdb.lookup_symbol(name)[0]
        kind = symbol.type.strip_typedefs() if symbol else None
        return kind is not None and kind.code == gdb.TYPE_CODE_PTR and kind.target().dynamic
    try:
        located(structure, "_%s_length" % name)
        return True
    except Wrong:
        return False

# A variable whose name gdb takes for one of its own functions.
def variable(name):
    symbol = gdb.lookup_symbol(literal(name))[0]
    if symbol is None:
        raise Wrong("No symbol \"%s\" in current context." % literal(name))
    return symbol.value(gdb.selected_frame()) if symbol.needs_frame else symbol.value()

# A part that a value's pretty-printer makes, in any language, by its number from 0; of a map the value of an entry.
def child(value, number):
    if value.type.code in (gdb.TYPE_CODE_REF, getattr(gdb, "TYPE_CODE_RVALUE_REF", None)):
        value = value.referenced_value()
    values.searching = True
    try:
        printer = gdb.default_visualizer(value)
    finally:
        values.searching = False
    if not hasattr(printer, "children"):
        raise Wrong("this value has no parts of a pretty-printer")
    is_map = getattr(printer, "display_hint", lambda: None)() == "map"
    at = int(number) * 2 + 1 if is_map else int(number)
    for _, found in itertools.islice(printer.children(), at, at + 1):
        return found
    raise Wrong("this value has no part %d" % int(number))

# An element of a value of Rust, the first of `run` ones. gdb itself counts from a reference to a container as from a
# pointer, and reads other memory. A pointer to anything else keeps the meaning that gdb gives it.
def index(value, at, run=1):
    kind = value.type.strip_typedefs()
    target = kind.target().strip_typedefs() if kind.code == gdb.TYPE_CODE_PTR else None
    if target is not None and (is_array(target) or is_slice(target) or HELD.match(target.name or "") or CONTAINER.match(target.name or "")):
        return index(value.dereference(), at, run)
    if HELD.match(kind.name or "") and HELD.match(kind.name).group(1):
        element, count = kind.template_argument(0), int(value["len"])
        return item_at(lambda at: first_pointer(value).cast(element.pointer())[at], at, count, run)
    found = CONTAINER.match(kind.name or "")
    if found and found.group(1) in ROWS:
        if int(run) != 1:
            raise Wrong("the elements of this container may be apart: name a single one, or print the whole container")
        read = lambda at: next(itertools.islice(ROWS[found.group(1)](value), at, None))[0]
        return item_at(read, at, int(value["len"]), run)
    if found:
        raise Wrong("gdb finds no entry by its key: print the whole container")
    if is_slice(kind):
        return item_at(lambda at: value["data_ptr"][at], at, int(value["length"]), run)
    if is_array(kind):
        return item_at(lambda at: value[at], at, kind.range()[1] + 1, run)
    return value[int(at)]

def item_at(read, at, count, run):
    for it in (int(at), int(at) + int(run) - 1):
        if not 0 <= it < count:
            raise Wrong("the index %d is not within the %d of this value" % (it, count))
    return read(int(at))

for work in (held, part, instance, section, item, same, sizeof, allocated, fitting, variable, child, index):
    Function(work.__name__, work)
