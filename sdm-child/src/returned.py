# Types of which gdb reads a function's result from another place than x86-64's functions leave it in.
UNREAD = re.compile(r"__float128|_Float128|__int128|real\(kind=16\)|vector_size|^[iu]128$")
NO_NUMBERS = (gdb.TYPE_CODE_PTR, gdb.TYPE_CODE_REF, gdb.TYPE_CODE_FUNC, gdb.TYPE_CODE_METHODPTR, gdb.TYPE_CODE_MEMBERPTR)

# The types of the numbers and pointers that a value consists of; of an array, those of its first element.
def leaves(kind):
    kind = kind.strip_typedefs()
    if kind.code in (gdb.TYPE_CODE_STRUCT, gdb.TYPE_CODE_UNION):
        # A static member has no place.
        return [leaf for field in kind.fields() if hasattr(field, "bitpos") for leaf in leaves(field.type)]
    if kind.code == gdb.TYPE_CODE_ARRAY and "vector_size" not in str(kind):
        return leaves(kind.target())
    return [kind]

def is_unread(kind):
    kind = kind.strip_typedefs()
    parts = leaves(kind)
    names = [str(leaf) for leaf in parts if leaf.code not in NO_NUMBERS]
    if kind.sizeof in (16, 32, 64) and any(UNREAD.search(name) for name in names):
        return True
    # gdb dies of a union of such a number and another one.
    if kind.sizeof == 16 and len(parts) > 1 and any(name in ("long double", "real(kind=10)") for name in names):
        return True
    if not 0 < kind.sizeof <= 16 or current_language() != "rust":
        return False
    # Rust returns some enums with data in memory where C has registers: gdb's call would write to any address.
    return is_enum(kind) or not is_plain(kind, parts)

# Rust has its own rules for small structures and arrays, which gdb does not know. They are those of C for one number in
# each eight bytes.
def is_plain(kind, parts):
    return len(parts) == (kind.sizeof + 7) // 8 and sum(leaf.sizeof for leaf in parts) == kind.sizeof

# The entry of the selected frame's function if gdb must not look at its result, or else 0. gdb 13 dies of a Fortran
# structure with allocatable components.
def unread_entry(_):
    frame = gdb.selected_frame()
    function = frame.function()
    if function is None or frame.type() == gdb.INLINE_FRAME:
        return 0
    kind = function.type.target()
    is_placed = getattr(kind, "dynamic", False) and kind.strip_typedefs().code == gdb.TYPE_CODE_STRUCT and is_fortran()
    is_x86 = "x86-64" in frame.architecture().name()
    return int(function.value().address) if is_placed or is_x86 and is_unread(kind) else 0

Function("unread", lambda value: int(is_unread(value.type)))
Function("unread_behind", lambda pointer: int(is_unread(pointer.type.target())))
Function("unread_entry", unread_entry)
