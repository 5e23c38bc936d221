/* Type signatures: the basic types that a datatype describes, in order, as a hash that is cheap for many elements. What is sent and what
 * is received must have the same. */
enum class { CHARACTER = 1, INTEGER, FLOATING, LOGICAL, COMPLEX, OF_BYTES, OF_ADDRESSES, PAIR, NO_OPERAND };

struct signature {
    uint64_t hash, elements;
    /* Of all elements, a number in BASICS from 1; 0 where they differ. And of the first one. */
    uint16_t basic, first;
    uint8_t is_known;
};

struct basic {
    const char *name;
    MPI_Datatype type;
    enum class class;
    /* The number of the type that it is taken for in comparisons. */
    uint16_t same;
    /* Of a pair: what it consists of. */
    uint16_t parts[2];
};

enum { BASICS_MAX = 96, ELEMENTS_MAX = 100000, NESTED_MAX = 16 };
static struct basic BASICS[BASICS_MAX];
static int basic_count = 1;

static int basic_of(MPI_Datatype type)
{
    static uint16_t near[256];
    uint16_t *slot = &near[(HANDLE(type) ^ HANDLE(type) >> 8) % 256];
    int known = __atomic_load_n(slot, __ATOMIC_RELAXED);
    if (known && BASICS[known].type == type)
        return known;
    for (int i = 1; i < basic_count; i++)
        if (BASICS[i].type == type) {
            __atomic_store_n(slot, i, __ATOMIC_RELAXED);
            return i;
        }
    return 0;
}

/* Fortran's types are those of C of their size: a program of both languages sends the one and receives the other. */
static void add_basic(const char *name, MPI_Datatype type, enum class class, MPI_Datatype same, MPI_Datatype first, MPI_Datatype second)
{
    if (type == MPI_DATATYPE_NULL || basic_count == BASICS_MAX || basic_of(type))
        return;
    struct basic *it = &BASICS[basic_count];
    *it = (struct basic){.name = name, .type = type, .class = class, .same = basic_count};
    basic_count++;
    int a = 0, b = 0;
    if (same != MPI_DATATYPE_NULL && basic_of(same) && !PMPI_Type_size(type, &a) && !PMPI_Type_size(same, &b) && a == b)
        it->same = basic_of(same);
    it->parts[0] = first == MPI_DATATYPE_NULL ? 0 : basic_of(first);
    it->parts[1] = second == MPI_DATATYPE_NULL ? 0 : basic_of(second);
}

#define BASIC(type, class) add_basic(#type, type, class, MPI_DATATYPE_NULL, MPI_DATATYPE_NULL, MPI_DATATYPE_NULL)
#define BASIC_AS(type, class, same) add_basic(#type, type, class, same, MPI_DATATYPE_NULL, MPI_DATATYPE_NULL)
#define BASIC_PAIR(type, first, second) add_basic(#type, type, PAIR, MPI_DATATYPE_NULL, first, second)

static void begin_fortran_types(void)
{
    BASIC_AS(MPI_CHARACTER, CHARACTER, MPI_CHAR);
    BASIC_AS(MPI_INTEGER, INTEGER, MPI_INT);
    BASIC_AS(MPI_INTEGER1, INTEGER, MPI_SIGNED_CHAR);
    BASIC_AS(MPI_INTEGER2, INTEGER, MPI_SHORT);
    BASIC_AS(MPI_INTEGER4, INTEGER, MPI_INT);
    BASIC_AS(MPI_INTEGER8, INTEGER, MPI_LONG);
    BASIC_AS(MPI_REAL, FLOATING, MPI_FLOAT);
    BASIC_AS(MPI_REAL4, FLOATING, MPI_FLOAT);
    BASIC_AS(MPI_REAL8, FLOATING, MPI_DOUBLE);
    BASIC_AS(MPI_DOUBLE_PRECISION, FLOATING, MPI_DOUBLE);
    BASIC(MPI_LOGICAL, LOGICAL);
    BASIC_AS(MPI_COMPLEX, COMPLEX, MPI_C_FLOAT_COMPLEX);
    BASIC_AS(MPI_COMPLEX8, COMPLEX, MPI_C_FLOAT_COMPLEX);
    BASIC_AS(MPI_COMPLEX16, COMPLEX, MPI_C_DOUBLE_COMPLEX);
    BASIC_AS(MPI_DOUBLE_COMPLEX, COMPLEX, MPI_C_DOUBLE_COMPLEX);
    BASIC_PAIR(MPI_2INTEGER, MPI_INTEGER, MPI_INTEGER);
    BASIC_PAIR(MPI_2REAL, MPI_REAL, MPI_REAL);
    BASIC_PAIR(MPI_2DOUBLE_PRECISION, MPI_DOUBLE_PRECISION, MPI_DOUBLE_PRECISION);
}

static void begin_types(void)
{
    BASIC(MPI_INT, INTEGER);
    BASIC(MPI_DOUBLE, FLOATING);
    BASIC(MPI_FLOAT, FLOATING);
    BASIC(MPI_BYTE, OF_BYTES);
    BASIC(MPI_CHAR, CHARACTER);
    BASIC(MPI_SIGNED_CHAR, INTEGER);
    BASIC(MPI_UNSIGNED_CHAR, INTEGER);
    BASIC(MPI_SHORT, INTEGER);
    BASIC(MPI_UNSIGNED_SHORT, INTEGER);
    BASIC(MPI_UNSIGNED, INTEGER);
    BASIC(MPI_LONG, INTEGER);
    BASIC(MPI_UNSIGNED_LONG, INTEGER);
    BASIC(MPI_LONG_LONG, INTEGER);
    BASIC(MPI_UNSIGNED_LONG_LONG, INTEGER);
    BASIC(MPI_LONG_DOUBLE, FLOATING);
    BASIC(MPI_WCHAR, NO_OPERAND);
    BASIC(MPI_C_BOOL, LOGICAL);
    BASIC_AS(MPI_INT8_T, INTEGER, MPI_SIGNED_CHAR);
    BASIC_AS(MPI_INT16_T, INTEGER, MPI_SHORT);
    BASIC_AS(MPI_INT32_T, INTEGER, MPI_INT);
    BASIC_AS(MPI_INT64_T, INTEGER, MPI_LONG);
    BASIC_AS(MPI_UINT8_T, INTEGER, MPI_UNSIGNED_CHAR);
    BASIC_AS(MPI_UINT16_T, INTEGER, MPI_UNSIGNED_SHORT);
    BASIC_AS(MPI_UINT32_T, INTEGER, MPI_UNSIGNED);
    BASIC_AS(MPI_UINT64_T, INTEGER, MPI_UNSIGNED_LONG);
    BASIC(MPI_AINT, OF_ADDRESSES);
    BASIC(MPI_COUNT, OF_ADDRESSES);
    BASIC(MPI_OFFSET, OF_ADDRESSES);
    BASIC(MPI_C_FLOAT_COMPLEX, COMPLEX);
    BASIC(MPI_C_DOUBLE_COMPLEX, COMPLEX);
    BASIC(MPI_C_LONG_DOUBLE_COMPLEX, COMPLEX);
    BASIC_PAIR(MPI_2INT, MPI_INT, MPI_INT);
    BASIC_PAIR(MPI_SHORT_INT, MPI_SHORT, MPI_INT);
    BASIC_PAIR(MPI_LONG_INT, MPI_LONG, MPI_INT);
    BASIC_PAIR(MPI_FLOAT_INT, MPI_FLOAT, MPI_INT);
    BASIC_PAIR(MPI_DOUBLE_INT, MPI_DOUBLE, MPI_INT);
    BASIC_PAIR(MPI_LONG_DOUBLE_INT, MPI_LONG_DOUBLE, MPI_INT);
    begin_fortran_types();
}

/* The power of the hash's base by which the elements of the second part are longer. */
static uint64_t power(uint64_t base, uint64_t exponent)
{
    uint64_t result = 1;
    for (; exponent; exponent >>= 1, base *= base)
        if (exponent & 1)
            result *= base;
    return result;
}

enum { BASE_LOW = 0x4f1bbcdd };
#define BASE (((uint64_t)0x9e3779b9 << 32) | BASE_LOW)

static struct signature joined(struct signature a, struct signature b)
{
    if (!a.elements)
        return (struct signature){b.hash, b.elements, b.basic, b.first, a.is_known && b.is_known};
    if (!b.elements)
        return (struct signature){a.hash, a.elements, a.basic, a.first, a.is_known && b.is_known};
    int is_same = a.basic && b.basic && BASICS[a.basic].same == BASICS[b.basic].same;
    return (struct signature){a.hash * power(BASE, b.elements) + b.hash, a.elements + b.elements, is_same ? a.basic : 0, a.first,
                              a.is_known && b.is_known};
}

static struct signature repeated(struct signature it, uint64_t count)
{
    struct signature result = {.is_known = 1};
    for (; count; count >>= 1) {
        if (count & 1)
            result = joined(result, it);
        if (count > 1)
            it = joined(it, it);
    }
    return result;
}

static struct signature of_basic(int basic)
{
    struct signature none = {0};
    const struct basic *it = &BASICS[basic];
    if (!basic)
        return none;
    if (it->class == PAIR)
        return it->parts[0] && it->parts[1] ? joined(of_basic(it->parts[0]), of_basic(it->parts[1])) : none;
    return (struct signature){.hash = (uint64_t)it->same * 0xd6e8feb86659fd93u, .elements = 1, .basic = basic, .first = basic, .is_known = 1};
}

/* How many numbers, places, large counts and datatypes another one is made of; the combiner is a named one where that is not known. */
struct envelope { MPI_Count integers, addresses, larges, types; int combiner; };

/* MPI ends the job if a datatype of large counts is asked by the functions for others. */
static struct envelope envelope_of(MPI_Datatype type)
{
    struct envelope it = {.combiner = MPI_COMBINER_NAMED};
#ifdef PMPI_Type_get_envelope_c
    PMPI_Type_get_envelope_c(type, &it.integers, &it.addresses, &it.larges, &it.types, &it.combiner);
#else
    int all[3] = {0};
    PMPI_Type_get_envelope(type, &all[0], &all[1], &all[2], &it.combiner);
    it.integers = all[0], it.addresses = all[1], it.types = all[2];
#endif
    return it;
}

/* What a datatype is made of, in the order of the functions without large counts. */
struct contents { int combiner, types; MPI_Count *numbers; MPI_Aint *places; MPI_Datatype *parts; };

static void forget_contents(struct contents *it)
{
    for (int i = 0; i < it->types; i++)
        if (!basic_of(it->parts[i]) && envelope_of(it->parts[i]).combiner != MPI_COMBINER_NAMED)
            PMPI_Type_free(&it->parts[i]);
    free(it->numbers), free(it->places), free(it->parts);
}

/* Puts large counts among the numbers, or among the places. */
static void sort_larges(struct contents *it, const int *integers, const MPI_Count *larges, int count)
{
    int is_array = it->combiner == MPI_COMBINER_SUBARRAY, numbers = count;
    if (it->combiner == MPI_COMBINER_HVECTOR || it->combiner == MPI_COMBINER_HINDEXED_BLOCK)
        numbers = 2;
    else if (it->combiner == MPI_COMBINER_HINDEXED || it->combiner == MPI_COMBINER_STRUCT)
        numbers = 1 + larges[0];
    else if (it->combiner == MPI_COMBINER_RESIZED)
        numbers = 0;
    memcpy(it->numbers + is_array, larges, numbers * sizeof *larges);
    for (int i = numbers; i < count; i++)
        it->places[i - numbers] = larges[i];
    if (is_array) {
        it->numbers[0] = integers[0];
        it->numbers[1 + numbers] = integers[1];
    }
}

/* True where there are some, which the caller forgets. */
static int read_contents(MPI_Datatype type, struct contents *it)
{
    struct envelope all = envelope_of(type);
    *it = (struct contents){.combiner = all.combiner};
    if (all.combiner == MPI_COMBINER_NAMED || !all.types || all.integers + all.addresses + all.larges + all.types > ELEMENTS_MAX)
        return 0;
    int *integers = calloc(all.integers + 1, sizeof *integers), is_read;
    MPI_Count *larges = calloc(all.larges + 1, sizeof *larges);
    it->numbers = calloc(all.integers + all.larges + 1, sizeof *it->numbers);
    it->places = calloc(all.addresses + all.larges + 1, sizeof *it->places);
    it->parts = calloc(all.types + 1, sizeof *it->parts);
    is_read = integers && larges && it->numbers && it->places && it->parts;
#ifdef PMPI_Type_get_contents_c
    if (is_read && all.larges)
        is_read = !PMPI_Type_get_contents_c(type, all.integers, all.addresses, all.larges, all.types, integers, it->places, larges, it->parts);
    else
#endif
        is_read = is_read && !PMPI_Type_get_contents(type, all.integers, all.addresses, all.types, integers, it->places, it->parts);
    it->types = is_read ? all.types : 0;
    for (int i = 0; is_read && i < all.integers; i++)
        it->numbers[i] = integers[i];
    if (is_read && all.larges)
        sort_larges(it, integers, larges, all.larges);
    free(integers), free(larges);
    if (!is_read)
        forget_contents(it);
    return is_read;
}

static const struct layout *layout_of(MPI_Datatype type);

/* The basic types of a datatype's contents. */
static struct signature of_contents(int combiner, const MPI_Count *n, const struct signature *inner)
{
    struct signature result = {.is_known = 1};
    uint64_t product = 1;
    switch (combiner) {
    case MPI_COMBINER_DUP:
    case MPI_COMBINER_RESIZED:
        return inner[0];
    case MPI_COMBINER_CONTIGUOUS:
        return repeated(inner[0], n[0]);
    case MPI_COMBINER_VECTOR:
    case MPI_COMBINER_HVECTOR:
    case MPI_COMBINER_INDEXED_BLOCK:
    case MPI_COMBINER_HINDEXED_BLOCK:
        return repeated(inner[0], (uint64_t)n[0] * n[1]);
    case MPI_COMBINER_INDEXED:
    case MPI_COMBINER_HINDEXED:
        product = 0;
        for (int i = 0; i < n[0]; i++)
            product += n[i + 1];
        return repeated(inner[0], product);
    case MPI_COMBINER_SUBARRAY:
        for (int i = 0; i < n[0]; i++)
            product *= n[1 + n[0] + i];
        return repeated(inner[0], product);
    case MPI_COMBINER_STRUCT:
        for (int i = 0; i < n[0]; i++)
            result = joined(result, repeated(inner[i], n[i + 1]));
        return result;
    default:
        return (struct signature){0};
    }
}

static struct signature derived(MPI_Datatype type, int nested)
{
    struct signature result = {0};
    struct contents of;
    int basic = basic_of(type);
    if (basic)
        return of_basic(basic);
    if (nested > NESTED_MAX || !read_contents(type, &of))
        return result;
    struct signature *inner = calloc(of.types, sizeof *inner);
    for (int i = 0; inner && i < of.types; i++)
        inner[i] = derived(of.parts[i], nested + 1);
    if (inner)
        result = of_contents(of.combiner, of.numbers, inner);
    free(inner);
    forget_contents(&of);
    return result;
}

/* A datatype can be used from now on. */
static void commit(MPI_Datatype type)
{
    struct signature signature = derived(type, 0);
    const struct layout *layout = layout_of(type);
    pthread_mutex_lock(&objects_lock);
    struct object *it = find(DATATYPE, HANDLE(type));
    if (it->life == LIVE) {
        it->is_committed = 1;
        it->layout = layout;
        it->hash = signature.hash;
        it->elements = signature.elements;
        it->basic = signature.basic;
        it->first = signature.first;
        it->is_known = signature.is_known;
    }
    pthread_mutex_unlock(&objects_lock);
}

/* The signature of so many elements. Unknown for MPI_PACKED, which fits all. */
static struct signature signature_of(long long count, MPI_Datatype type)
{
    struct signature none = {.is_known = 1};
    if (count <= 0 || type == MPI_DATATYPE_NULL)
        return none;
    int basic = basic_of(type);
    if (basic)
        return count == 1 ? of_basic(basic) : repeated(of_basic(basic), count);
    struct object it = look_up(DATATYPE, HANDLE(type));
    return repeated((struct signature){it.hash, it.elements, it.basic, it.first, it.life == LIVE && it.is_known}, count);
}

static uint64_t bytes_of(long long count, MPI_Datatype type)
{
    MPI_Count size = 0;
    if (count > 0 && type != MPI_DATATYPE_NULL)
        PMPI_Type_size_x(type, &size);
    return size > 0 ? (uint64_t)size * count : 0;
}

/* True if these are not the same elements, as far as is known. */
static int are_unlike(struct signature a, uint64_t a_bytes, struct signature b, uint64_t b_bytes)
{
    return a_bytes != b_bytes || (a.is_known && b.is_known && a.hash != b.hash);
}

/* As `4 MPI_INT`. */
static void name_signature(struct signature it, uint64_t bytes, char *text, size_t room)
{
    if (it.is_known && it.basic && it.basic < basic_count)
        snprintf(text, room, "%llu %s", (unsigned long long)it.elements, BASICS[it.basic].name);
    else if (it.is_known && it.elements)
        snprintf(text, room, "%llu elements of several types", (unsigned long long)it.elements);
    else
        snprintf(text, room, "%llu bytes", (unsigned long long)bytes);
}

static int can_reduce(MPI_Op op, enum class class)
{
    if (op == MPI_MAX || op == MPI_MIN)
        return class == INTEGER || class == FLOATING || class == OF_ADDRESSES;
    if (op == MPI_SUM || op == MPI_PROD)
        return class == INTEGER || class == FLOATING || class == OF_ADDRESSES || class == COMPLEX;
    if (op == MPI_LAND || op == MPI_LOR || op == MPI_LXOR)
        return class == INTEGER || class == LOGICAL || class == OF_ADDRESSES;
    if (op == MPI_BAND || op == MPI_BOR || op == MPI_BXOR)
        return class == INTEGER || class == OF_BYTES || class == OF_ADDRESSES;
    return class == PAIR;
}
