/* Which bytes of a datatype with gaps are its own. Equal layouts are kept once, and for good: requests outlive their datatypes. */
enum { LAYOUTS_MAX = 4096, BLOCKS_MAX = 512, ORDERS_MAX = 16 };
struct block { MPI_Aint low, high; };
/* By their places; none touches the next. */
struct layout { struct layout *next; uint64_t hash; int count; struct block blocks[]; };
struct blocks { struct block all[BLOCKS_MAX]; int count, is_off; };

static struct layout *layouts[1024];
static int layout_count;

static void add_block(struct blocks *it, MPI_Aint low, MPI_Aint high)
{
    if (it->count && it->all[it->count - 1].high == low)
        it->all[it->count - 1].high = high;
    else if (it->count < BLOCKS_MAX)
        it->all[it->count++] = (struct block){low, high};
    else
        it->is_off = 1;
}

static void place(struct blocks *it, MPI_Datatype type, MPI_Aint at, int nested);

/* So many elements, one behind the other. */
static void place_all(struct blocks *it, MPI_Datatype type, MPI_Aint at, MPI_Aint count, int nested)
{
    MPI_Aint low, extent, true_low, true_extent;
    int size = 0;
    if (PMPI_Type_size(type, &size) || PMPI_Type_get_extent(type, &low, &extent) || PMPI_Type_get_true_extent(type, &true_low, &true_extent)) {
        it->is_off = 1;
    } else if (size == true_extent && extent == true_extent) {
        if (size && count > 0)
            add_block(it, at + true_low, at + true_low + count * size);
    } else
        for (MPI_Aint i = 0; i < count && size && !it->is_off; i++)
            place(it, type, at + i * extent, nested);
}

static void place_subarray(struct blocks *it, MPI_Datatype type, MPI_Aint extent, const MPI_Count *n, MPI_Aint at, int nested)
{
    int dimensions = n[0], is_fortran = n[1 + 3 * dimensions] == MPI_ORDER_FORTRAN, index[ORDERS_MAX] = {0};
    const MPI_Count *sizes = n + 1, *parts = sizes + dimensions, *starts = parts + dimensions;
    int last = is_fortran ? 0 : dimensions - 1, step = is_fortran ? 1 : -1, d = last;
    if (dimensions < 1 || dimensions > ORDERS_MAX) {
        it->is_off = 1;
        return;
    }
    while (d >= 0 && d < dimensions && !it->is_off) {
        MPI_Aint element = 0, unit = 1;
        for (d = last; d >= 0 && d < dimensions; d += step) {
            element += (starts[d] + index[d]) * unit;
            unit *= sizes[d];
        }
        place_all(it, type, at + element * extent, parts[last], nested);
        for (d = last + step; d >= 0 && d < dimensions && ++index[d] == parts[d]; d += step)
            index[d] = 0;
    }
}

static void place_parts(struct blocks *it, const struct contents *of, MPI_Aint at, int nested)
{
    const MPI_Aint *places = of->places;
    const MPI_Datatype *parts = of->parts;
    const MPI_Count *n = of->numbers;
    MPI_Aint low, unit = 0;
    int combiner = of->combiner, is_near = combiner == MPI_COMBINER_VECTOR || combiner == MPI_COMBINER_INDEXED || combiner == MPI_COMBINER_INDEXED_BLOCK;
    PMPI_Type_get_extent(parts[0], &low, &unit);
    if (combiner == MPI_COMBINER_DUP || combiner == MPI_COMBINER_RESIZED)
        place_all(it, parts[0], at, 1, nested);
    else if (combiner == MPI_COMBINER_CONTIGUOUS)
        place_all(it, parts[0], at, n[0], nested);
    else if (combiner == MPI_COMBINER_SUBARRAY)
        place_subarray(it, parts[0], unit, n, at, nested);
    else
        for (int i = 0; i < n[0] && !it->is_off; i++)
            switch (combiner) {
            case MPI_COMBINER_VECTOR:
            case MPI_COMBINER_HVECTOR:
                place_all(it, parts[0], at + i * (is_near ? n[2] * unit : places[0]), n[1], nested);
                break;
            case MPI_COMBINER_INDEXED:
            case MPI_COMBINER_HINDEXED:
                place_all(it, parts[0], at + (is_near ? n[1 + n[0] + i] * unit : places[i]), n[1 + i], nested);
                break;
            case MPI_COMBINER_INDEXED_BLOCK:
            case MPI_COMBINER_HINDEXED_BLOCK:
                place_all(it, parts[0], at + (is_near ? n[2 + i] * unit : places[i]), n[1], nested);
                break;
            case MPI_COMBINER_STRUCT:
                place_all(it, parts[i], at + places[i], n[1 + i], nested);
                break;
            default:
                it->is_off = 1;
            }
}

static void place(struct blocks *it, MPI_Datatype type, MPI_Aint at, int nested)
{
    struct contents of;
    /* A basic type that has a gap itself has no contents. */
    if (nested > NESTED_MAX || basic_of(type) || !read_contents(type, &of)) {
        it->is_off = 1;
        return;
    }
    place_parts(it, &of, at, nested + 1);
    forget_contents(&of);
}

static int by_low(const void *a, const void *b)
{
    const struct block *one = a, *other = b;
    return one->low < other->low ? -1 : one->low > other->low;
}

/* The layout of a datatype; null where it has no gaps, or too many. */
static const struct layout *layout_of(MPI_Datatype type)
{
    struct blocks found = {.count = 0};
    MPI_Aint low, extent, true_low, true_extent;
    int size = 0, used = 0;
    if (PMPI_Type_size(type, &size) || PMPI_Type_get_extent(type, &low, &extent) || PMPI_Type_get_true_extent(type, &true_low, &true_extent))
        return NULL;
    if (size <= 0 || (size == true_extent && extent == true_extent))
        return NULL;
    if (size == true_extent)
        add_block(&found, true_low, true_low + true_extent);
    else
        place(&found, type, 0, 0);
    if (found.is_off || !found.count)
        return NULL;
    qsort(found.all, found.count, sizeof *found.all, by_low);
    for (int i = 1; i < found.count; i++)
        if (found.all[i].low > found.all[used].high)
            found.all[++used] = found.all[i];
        else if (found.all[i].high > found.all[used].high)
            found.all[used].high = found.all[i].high;
    size_t length = (used + 1) * sizeof *found.all;
    uint64_t hash = used + 1;
    for (int i = 0; i <= used; i++)
        hash = (hash ^ found.all[i].low) * 0x9e3779b97f4a7c15u, hash = (hash ^ hash >> 29 ^ found.all[i].high) * 0xd6e8feb86659fd93u;
    pthread_mutex_lock(&objects_lock);
    struct layout **first = &layouts[hash >> 54], *it = *first;
    while (it && (it->hash != hash || it->count != used + 1 || memcmp(it->blocks, found.all, length)))
        it = it->next;
    if (!it && layout_count < LAYOUTS_MAX && (it = malloc(sizeof *it + length))) {
        *it = (struct layout){.next = *first, .hash = hash, .count = used + 1};
        memcpy(it->blocks, found.all, length);
        *first = it;
        layout_count++;
    }
    pthread_mutex_unlock(&objects_lock);
    return it;
}

/* Memory that an operation uses: all between its ends, or so many elements of a layout, of which one begins each `step` bytes. */
struct extent { char *start, *end; const struct layout *layout; int count; MPI_Aint step; };

static char *base_of(const struct extent *it)
{
    return it->start - it->layout->blocks[0].low;
}

/* True where one of the bytes from `low` to `high` is among them. */
static int has_bytes(const struct extent *it, const char *low, const char *high)
{
    if (low >= it->end || high <= it->start || !it->layout)
        return low < it->end && high > it->start;
    const struct block *all = it->layout->blocks, *last = &all[it->layout->count - 1];
    MPI_Aint from = low - base_of(it), to = high - base_of(it), first = 0;
    if (it->step > 0 && from > last->high)
        first = (from - last->high) / it->step;
    for (MPI_Aint i = first; i < it->count && all[0].low + i * it->step < to; i++) {
        int a = 0, b = it->layout->count;
        while (a < b) {
            int middle = (a + b) / 2;
            if (all[middle].high + i * it->step <= from)
                a = middle + 1;
            else
                b = middle;
        }
        if (a < it->layout->count && all[a].low + i * it->step < to)
            return 1;
    }
    return 0;
}

/* A loop asks the same again and again, so each answer is kept. */
static int have_common(const struct extent *a, const struct extent *b)
{
    enum { PIECES_MAX = 1 << 16 };
    static uint64_t known[256];
    uint64_t key = 1;
    const uint64_t all[] = {(uintptr_t)a->layout, (uintptr_t)b->layout, a->count, b->count, a->step, b->step, b->start - a->start, a->end - a->start, b->end - b->start};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        key = (key ^ all[i]) * 0x9e3779b97f4a7c15u, key ^= key >> 29;
    uint64_t *slot = &known[key >> 56], before = __atomic_load_n(slot, __ATOMIC_RELAXED);
    if ((before ^ key) < 2)
        return before & 1;
    int found = 0, pieces = 0;
    for (int i = 0; i < a->count && !found; i++)
        for (int j = 0; j < a->layout->count && !found; j++) {
            const char *base = base_of(a) + i * a->step;
            found = pieces++ < PIECES_MAX && has_bytes(b, base + a->layout->blocks[j].low, base + a->layout->blocks[j].high);
        }
    __atomic_store_n(slot, (key & ~(uint64_t)1) | found, __ATOMIC_RELAXED);
    return found;
}

static int overlap(struct extent a, struct extent b)
{
    if (a.start >= b.end || b.start >= a.end)
        return 0;
    if (!a.layout && !b.layout)
        return 1;
    return a.layout ? have_common(&a, &b) : have_common(&b, &a);
}

/* The bytes of a buffer; empty where they are not known. */
static struct extent memory_of(const void *buffer, long long count, MPI_Datatype type)
{
    struct extent none = {0};
    MPI_Aint low, extent, true_low, true_extent;
    int size;
    if (!buffer || count <= 0)
        return none;
    if (PMPI_Type_size(type, &size) || PMPI_Type_get_extent(type, &low, &extent) || PMPI_Type_get_true_extent(type, &true_low, &true_extent))
        return none;
    if (size > 0 && size == true_extent && (count == 1 || extent == true_extent)) {
        char *start = (char *)buffer + true_low;
        return (struct extent){.start = start, .end = start + (MPI_Aint)count * size};
    }
    struct object it = look_up(DATATYPE, HANDLE(type));
    if (it.life != LIVE || !it.layout || count > INT32_MAX || (count > 1 && extent <= 0))
        return none;
    const struct block *all = it.layout->blocks;
    return (struct extent){(char *)buffer + all[0].low, (char *)buffer + (count - 1) * extent + all[it.layout->count - 1].high, it.layout, count, count > 1 ? extent : 0};
}

/* The parts of all ranks; empty where they do not follow each other. */
static struct extent memory_of_parts(const void *buffer, struct list counts, struct list displs, int size, MPI_Datatype type)
{
    MPI_Aint low, extent;
    long long sum = 0;
    for (int i = 0; i < size; i++) {
        if (number_at(counts, i) && number_at(displs, i) != number_at(displs, 0) + sum)
            return (struct extent){0};
        sum += number_at(counts, i);
    }
    if (!buffer || sum <= 0 || PMPI_Type_get_extent(type, &low, &extent))
        return (struct extent){0};
    return memory_of((const char *)buffer + number_at(displs, 0) * extent, sum, type);
}
