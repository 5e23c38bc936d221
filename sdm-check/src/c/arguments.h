/* Checks of one argument, or of some of one call. Each is true where the argument can be used. */
static int check_handle(struct call *call, enum kind kind, uint64_t handle, const char *name)
{
    if (is_null(kind, handle)) {
        if (kind == INFO || kind == REQUEST)
            return 0;
        report(call, NULL_HANDLE, NULL, "%s is a null %s", name, KINDS[kind]);
        return 0;
    }
    if (kind == COMMUNICATOR && (handle == HANDLE(MPI_COMM_WORLD) || handle == HANDLE(MPI_COMM_SELF)))
        return 1;
    struct object it = look_up(kind, handle);
    if (it.life != FREED)
        return 1;
    report(call, FREED_HANDLE, it.site, "%s is the %s of %s at {%p}, which was freed", name, KINDS[kind], it.maker, it.site);
    return 0;
}

/* Checks a handle that is to be freed. */
static void check_free(struct call *call, enum kind kind, uint64_t handle, const char *name)
{
    if (kind == INFO && is_null(kind, handle))
        report(call, NULL_HANDLE, NULL, "%s is a null info", name);
    else if (kind == REQUEST && is_null(kind, handle))
        report(call, NULL_HANDLE, NULL, "%s is a null request", name);
    else if (kind == COMMUNICATOR && (handle == HANDLE(MPI_COMM_WORLD) || handle == HANDLE(MPI_COMM_SELF)))
        report(call, WRONG_KIND, NULL, "MPI's own communicators cannot be freed");
    else
        check_handle(call, kind, handle, name);
}

static int check_count(struct call *call, long long count, const char *name)
{
    if (count >= 0)
        return 1;
    report(call, NEGATIVE_COUNT, NULL, "%s is %lld", name, count);
    return 0;
}

static int check_lengths(struct call *call, long long count, struct list lengths, const char *name)
{
    for (int i = 0; i < count; i++)
        if (number_at(lengths, i) < 0) {
            report(call, NEGATIVE_COUNT, NULL, "%s[%d] is %lld", name, i, number_at(lengths, i));
            return 0;
        }
    return 1;
}

static void check_info(struct call *call, MPI_Info info, const char *name)
{
    if (info == MPI_INFO_NULL)
        report(call, NULL_HANDLE, NULL, "%s is a null info", name);
}

/* The type of what a buffer holds. */
static int check_type(struct call *call, MPI_Datatype type, const char *name)
{
    if (!check_handle(call, DATATYPE, HANDLE(type), name))
        return 0;
    struct object it = look_up(DATATYPE, HANDLE(type));
    if (it.life != LIVE || it.is_committed)
        return 1;
    report(call, UNCOMMITTED, it.site, "%s is the datatype of %s at {%p}, which was not committed", name, it.maker, it.site);
    return 0;
}

enum side { DESTINATION, SOURCE, ROOT };

/* Number of ranks on the other side of a communicator. */
static int peers(MPI_Comm comm, int *is_inter)
{
    int size = 0;
    PMPI_Comm_test_inter(comm, is_inter);
    if (*is_inter)
        PMPI_Comm_remote_size(comm, &size);
    else
        PMPI_Comm_size(comm, &size);
    return size;
}

static int check_rank(struct call *call, MPI_Comm comm, int rank, enum side side, const char *name)
{
    int is_inter = 0, size = peers(comm, &is_inter);
    int is_special = side == ROOT ? is_inter && (rank == MPI_ROOT || rank == MPI_PROC_NULL)
                                  : rank == MPI_PROC_NULL || (side == SOURCE && rank == MPI_ANY_SOURCE);
    if (is_special || (rank >= 0 && rank < size))
        return 1;
    report(call, RANK_RANGE, NULL, "%s is %d, in a communicator of %d ranks", name, rank, size);
    return 0;
}

static int check_target(struct call *call, MPI_Win window, int rank, const char *name)
{
    MPI_Group group;
    int size = 0;
    PMPI_Win_get_group(window, &group);
    PMPI_Group_size(group, &size);
    PMPI_Group_free(&group);
    if (rank == MPI_PROC_NULL || (rank >= 0 && rank < size))
        return 1;
    report(call, RANK_RANGE, NULL, "%s is %d, in a window of %d ranks", name, rank, size);
    return 0;
}

static void check_tag(struct call *call, int tag, int can_be_any, const char *name)
{
    if (can_be_any && tag == MPI_ANY_TAG)
        return;
    if (tag < 0)
        report(call, TAG_RANGE, NULL, "%s is %d", name, tag);
    else if (tag > tag_max)
        report(call, TAG_RANGE, NULL, "%s is %d, of at most %d", name, tag, tag_max);
}

static int is_named(MPI_Datatype type)
{
    return envelope_of(type).combiner == MPI_COMBINER_NAMED;
}

/* A buffer of a type that was found right. */
static void check_buffer(struct call *call, const void *buffer, long long count, MPI_Datatype type, int may_be_in_place, const char *name)
{
    if (buffer == MPI_IN_PLACE && !may_be_in_place) {
        report(call, BAD_IN_PLACE, NULL, "%s cannot be MPI_IN_PLACE here", name);
        return;
    }
    /* MPI_BOTTOM is null, too: then a derived type says where the data are. */
    if (buffer || count <= 0 || !is_named(type))
        return;
    int size = 0;
    PMPI_Type_size(type, &size);
    if (size > 0)
        report(call, NULL_BUFFER, NULL, "%s is null, for %lld elements", name, count);
}

/* The elements of all ranks. */
static long long all_of(struct list counts, int count)
{
    long long sum = 0;
    /* There are none where a buffer is MPI_IN_PLACE. */
    for (int i = 0; counts.values && i < count; i++)
        sum += number_at(counts, i) > 0 ? number_at(counts, i) : 0;
    return sum;
}

/* A file that was opened for the other kind of access. Its error handler only returns an error, of which nobody may know. */
static void check_file(struct call *call, MPI_File file, int is_write)
{
    int mode = 0;
    if (PMPI_File_get_amode(file, &mode) == MPI_SUCCESS && mode & (is_write ? MPI_MODE_RDONLY : MPI_MODE_WRONLY))
        report(call, WRONG_KIND, NULL, "the file was opened with %s", is_write ? "MPI_MODE_RDONLY" : "MPI_MODE_WRONLY");
    else if ((strstr(call->name, "_all") || strstr(call->name, "_ordered")) && !strstr(call->name, "_begin") && !strstr(call->name, "_end") && look_up(FILE_HANDLE, HANDLE(file)).is_active)
        report(call, BAD_SPLIT, NULL, "a split collective call of the file has begun, and has not ended");
    else if (mode & MPI_MODE_SEQUENTIAL && !strstr(call->name, "_shared") && !strstr(call->name, "_ordered"))
        report(call, WRONG_KIND, NULL, "the file was opened with MPI_MODE_SEQUENTIAL, which allows only the shared file pointer");
}

/* A split collective call of a file begins, or ends; -1 where the file is closed. There is one at a time. */
static void check_split(struct call *call, MPI_File file, int begins)
{
    pthread_mutex_lock(&objects_lock);
    struct object *it = find(FILE_HANDLE, HANDLE(file));
    struct object before = *it;
    size_t length = begins < 0 ? 0 : strlen(call->name) - strlen(strstr(call->name, begins ? "_begin" : "_end"));
    if (it->life == LIVE && begins >= 0)
        it->is_active = begins;
    if (it->life == LIVE && begins > 0)
        it->split = call->name;
    pthread_mutex_unlock(&objects_lock);
    if (begins < 0)
        close_request(~HANDLE(file));
    if (before.life != LIVE || depth != 1)
        return;
    if (begins && before.is_active)
        report(call, BAD_SPLIT, NULL, "a split collective call of the file has begun, and has not ended");
    else if (!begins && !before.is_active)
        report(call, BAD_SPLIT, NULL, "no split collective call of the file has begun");
    else if (begins == 0 && (strncmp(before.split, call->name, length) || before.split[length] != '_' || before.split[length + 1] != 'b'))
        report(call, BAD_SPLIT, NULL, "the split collective call of the file that has begun is %s", before.split);
}

/* The part of each rank, where there is a count for each. */
static void check_counts(struct call *call, MPI_Comm comm, const void *buffer, struct list counts, const char *name, const MPI_Datatype *types, const char *types_name)
{
    int is_between = 0, size = peers(comm, &is_between);
    for (int i = 0; counts.values && buffer != MPI_IN_PLACE && !is_between && i < size; i++) {
        if (number_at(counts, i) < 0) {
            report(call, NEGATIVE_COUNT, NULL, "%s[%d] is %lld", name, i, number_at(counts, i));
            return;
        }
        if (types && number_at(counts, i) && !check_type(call, types[i], types_name))
            return;
    }
}

/* The buffers that one call sends and receives. */
static void check_aliases(struct call *call, struct extent send, struct extent receive)
{
    if (send.start && receive.start && overlap(send, receive))
        report(call, ALIASED, NULL, "the send buffer and the receive buffer overlap");
}

static int is_inter(MPI_Comm comm)
{
    int flag = 0;
    PMPI_Comm_test_inter(comm, &flag);
    return flag;
}

static int group_size(MPI_Comm comm)
{
    int flag = 0;
    return peers(comm, &flag);
}

static int rank_in(MPI_Comm comm)
{
    int rank = -1;
    PMPI_Comm_rank(comm, &rank);
    return rank;
}

static int is_root(MPI_Comm comm, int root)
{
    return rank_in(comm) == root;
}

enum shape { INTRA, INTER, CARTESIAN, TOPOLOGY };

static void check_shape(struct call *call, MPI_Comm comm, enum shape shape)
{
    int flag = 0, topology = MPI_UNDEFINED;
    PMPI_Comm_test_inter(comm, &flag);
    if (shape == INTRA && flag)
        report(call, WRONG_KIND, NULL, "the communicator is one between two groups");
    else if (shape == INTER && !flag)
        report(call, WRONG_KIND, NULL, "the communicator is none between two groups");
    if (shape < CARTESIAN)
        return;
    PMPI_Topo_test(comm, &topology);
    if (topology == MPI_UNDEFINED)
        report(call, WRONG_KIND, NULL, "the communicator has no topology");
    else if (shape == CARTESIAN && topology != MPI_CART)
        report(call, WRONG_KIND, NULL, "the communicator has no Cartesian topology");
}
