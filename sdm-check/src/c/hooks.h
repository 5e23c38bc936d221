/* Actions before and after certain functions. The wrappers call them by their names. */
static void forget_ourselves(void)
{
    /* Processes that the program starts are not checked. */
    const char *own = getenv("SDM_CHECK"), *all = getenv("LD_PRELOAD");
    if (own && all && !strncmp(all, own, strlen(own))) {
        const char *rest = all + strlen(own);
        if (*rest == ':' && rest[1])
            setenv("LD_PRELOAD", strdup(rest + 1), 1);
        else
            unsetenv("LD_PRELOAD");
    }
    sdm_check_stage = 1;
    known_tracer = tracer();
    is_strict = getenv("SDM_CHECK_STRICT") != NULL;
    unsetenv("SDM_CHECK");
    unsetenv("SDM_CHECK_STRICT");
    unsetenv("SDM_CHECK_SUPPRESS");
}

static void check_again(struct call *call)
{
    if (finalized)
        report(call, AFTER_FINALIZE, NULL, "called after MPI_Finalize");
    else
        report(call, INIT_TWICE, NULL, "MPI has begun already");
}

static void has_begun(void)
{
    void *bound;
    int flag = 0;
    PMPI_Query_thread(&level);
    if (!PMPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, &bound, &flag) && flag)
        tag_max = *(int *)bound;
    main_thread = pthread_self();
    begin_types();
    begin_sequences();
    begin_requests();
    begin_handlers();
    initialized = 1;
}

#define pre_Init(call, argc, argv) (initialized ? check_again(call) : forget_ourselves())
#define post_Init(call, rc, argc, argv) ((rc) == MPI_SUCCESS ? has_begun() : (void)0)
#define pre_Init_thread(call, argc, argv, required, provided) (initialized ? check_again(call) : forget_ourselves())
#define post_Init_thread(call, rc, argc, argv, required, provided) ((rc) == MPI_SUCCESS ? has_begun() : (void)0)

#define post_Session_init(call, rc, info, errhandler, session) ((rc) == MPI_SUCCESS ? (void)(has_sessions = 1) : (void)0)

static void pre_Finalize(struct call *call)
{
    sdm_check_stage = 2;
    compare_sequences(call);
    compare_messages(call);
    compare_accesses(call);
    end_sequences();
#ifdef MPICH
    /* Its end with a window that is left may be an abort. */
    report_leaks(call, WINDOW, WINDOW);
#endif
}

static void post_Finalize(struct call *call, int rc)
{
    if (rc != MPI_SUCCESS || finalized)
        return;
    finalized = 1;
    /* Objects that others free with MPI_COMM_SELF are freed by now. */
    report_leaks(call, COMMUNICATOR, MATCHED);
}

static void pre_Comm_split(struct call *call, MPI_Comm comm, int color, int key, MPI_Comm *made)
{
    (void)comm, (void)key, (void)made;
    if (color < 0 && color != MPI_UNDEFINED)
        report(call, BAD_COLOR, NULL, "color is %d", color);
}

/* The leader of the other group is significant at that of this one. */
static void pre_Intercomm_create(struct call *call, MPI_Comm comm, int leader, MPI_Comm peer, int remote, int tag, MPI_Comm *made)
{
    (void)made;
    check_tag(call, tag, 0, "tag");
    if (comm != MPI_COMM_NULL && check_rank(call, comm, leader, ROOT, "local_leader") && is_root(comm, leader) && check_handle(call, COMMUNICATOR, HANDLE(peer), "peer_comm"))
        check_rank(call, peer, remote, ROOT, "remote_leader");
}

static void pre_Type_commit(struct call *call, MPI_Datatype *type)
{
    check_handle(call, DATATYPE, HANDLE(*type), "datatype");
}

#define pre_Type_create_struct(call, count, lengths, places, types, made) \
    for (int i = 0; i < (count); i++) if ((lengths)[i]) check_handle(call, DATATYPE, HANDLE((types)[i]), "array_of_types")

static void post_Type_commit(struct call *call, int rc, MPI_Datatype *type)
{
    (void)call;
    if (rc == MPI_SUCCESS)
        commit(*type);
}

static void post_Type_dup(struct call *call, int rc, MPI_Datatype old, MPI_Datatype *type)
{
    (void)call;
    struct object it = look_up(DATATYPE, HANDLE(old));
    if (rc == MPI_SUCCESS && (it.life != LIVE || it.is_committed))
        commit(*type);
}

/* MPI may give a datatype that is in another one the handle of one that was freed: it is the program's own again. */
static void own_contents(struct call *call, int rc, MPI_Datatype type, long long types, MPI_Datatype *found)
{
    for (int i = 0; rc == MPI_SUCCESS && i < types && i < envelope_of(type).types; i++)
        if (!is_named(found[i])) {
            new_object(call, DATATYPE, HANDLE(found[i]));
            commit(found[i]);
        }
}

#define post_Type_get_contents(call, rc, type, integers, addresses, types, a, b, found) own_contents(call, rc, type, types, found)
#define post_Type_get_contents_c(call, rc, type, integers, addresses, larges, types, a, b, c, found) own_contents(call, rc, type, types, found)

static void check_subarray(struct call *call, int dimensions, struct list sizes, struct list parts, struct list starts)
{
    for (int i = 0; i < dimensions; i++) {
        long long size = number_at(sizes, i), part = number_at(parts, i), start = number_at(starts, i);
        if (part < 1 || start < 0 || start > size - part)
            report(call, BAD_PART, NULL, "dimension %d: %lld elements from %lld on, of an array of %lld", i, part, start, size);
    }
}

#define pre_Type_create_subarray(call, dimensions, sizes, parts, starts, order, old, type) check_subarray(call, dimensions, LIST(sizes), LIST(parts), LIST(starts))

/* The part that is packed or unpacked must be within the buffer of packed data. */
static void check_room(struct call *call, long long count, MPI_Datatype type, long long size, long long position)
{
    uint64_t bytes = type != MPI_DATATYPE_NULL && look_up(DATATYPE, HANDLE(type)).life != FREED ? bytes_of(count, type) : 0;
    if (bytes && (int64_t)bytes > size - position)
        report(call, TRUNCATED, NULL, "%llu bytes, of a buffer with %lld left", (unsigned long long)bytes, size - position);
}

#define pre_Pack(call, in, count, type, out, size, position, comm) check_room(call, count, type, size, *(position))
#define pre_Unpack(call, in, size, position, out, count, type, comm) check_room(call, count, type, size, *(position))

/* A library may keep its keys for good, as mpi4py does. */
static int is_of_program(void *address)
{
    Dl_info found;
    return !dladdr(address, &found) || !found.dli_fname || !strstr(found.dli_fname, ".so");
}

/* Keys of attributes, and error handlers. */
static void made_key(struct call *call, int key)
{
    made(call, KEY, key, 0);
    pthread_mutex_lock(&objects_lock);
    struct object *it = find(KEY, key);
    if (it->life == LIVE && !is_of_program(site(call)))
        it->life = OVER;
    pthread_mutex_unlock(&objects_lock);
}

static int check_valid_key(struct call *call, int key)
{
    if (key == MPI_KEYVAL_INVALID)
        report(call, NULL_HANDLE, NULL, "the key is MPI_KEYVAL_INVALID");
    return key != MPI_KEYVAL_INVALID;
}

/* A value that was set before can be read, and deleted. */
static void check_key(struct call *call, int key)
{
    struct object it = look_up(KEY, key);
    if (check_valid_key(call, key) && it.life == FREED)
        report(call, FREED_HANDLE, it.site, "the key of %s at {%p} was freed", it.maker, it.site);
}

#define pre_Comm_set_attr(call, object, key, value) check_key(call, key)
#define pre_Comm_get_attr(call, object, key, value, flag) check_valid_key(call, key)
#define pre_Comm_delete_attr(call, object, key) check_valid_key(call, key)
#define pre_Win_set_attr(call, object, key, value) check_key(call, key)
#define pre_Win_get_attr(call, object, key, value, flag) check_valid_key(call, key)
#define pre_Win_delete_attr(call, object, key) check_valid_key(call, key)
#define pre_Type_set_attr(call, object, key, value) check_key(call, key)
#define pre_Type_get_attr(call, object, key, value, flag) check_valid_key(call, key)
#define pre_Type_delete_attr(call, object, key) check_valid_key(call, key)

/* An operator of the program's own is known by where its function lies in the program, which other ranks may have elsewhere. */
static void made_operator(struct call *call, int rc, void *function, int commutes, MPI_Op *op)
{
    Dl_info found;
    (void)call;
    if (rc != MPI_SUCCESS || !is_of_program(function) || !dladdr(function, &found) || !found.dli_fname)
        return;
    uint64_t name = 0;
    for (const char *it = found.dli_fname; *it; it++)
        name = mix(name, (unsigned char)*it);
    pthread_mutex_lock(&objects_lock);
    struct object *it = find(OPERATOR, HANDLE(*op));
    if (it->life == LIVE)
        it->hash = name << 32 | (uint32_t)(((uintptr_t)function - (uintptr_t)found.dli_fbase) << 1 | (commutes != 0));
    pthread_mutex_unlock(&objects_lock);
}

#define post_Op_create(call, rc, function, commutes, op) made_operator(call, rc, (void *)(uintptr_t)(function), commutes, op)

static void check_handler(struct call *call, MPI_Errhandler handler)
{
    if (handler == MPI_ERRHANDLER_NULL)
        report(call, NULL_HANDLE, NULL, "errhandler is a null error handler");
}

#define pre_File_set_errhandler(call, file, handler) check_handler(call, handler)
#define MADE_KEY(call, rc, key) ((rc) == MPI_SUCCESS ? made_key(call, *(key)) : (void)0)
#define post_Comm_create_keyval(call, rc, copy, delete, key, state) MADE_KEY(call, rc, key)
#define post_Type_create_keyval(call, rc, copy, delete, key, state) MADE_KEY(call, rc, key)
#define post_Win_create_keyval(call, rc, copy, delete, key, state) MADE_KEY(call, rc, key)
#define post_Keyval_create(call, rc, copy, delete, key, state) MADE_KEY(call, rc, key)
#define pre_Comm_free_keyval(call, key) (check_key(call, *(key)), freed(KEY, *(key)))
#define pre_Type_free_keyval(call, key) (check_key(call, *(key)), freed(KEY, *(key)))
#define pre_Win_free_keyval(call, key) (check_key(call, *(key)), freed(KEY, *(key)))
#define pre_Keyval_free(call, key) (check_key(call, *(key)), freed(KEY, *(key)))
#define MADE_HANDLER(call, rc, handler) ((rc) == MPI_SUCCESS ? made(call, ERROR_HANDLER, HANDLE(*(handler)), 0) : (void)0)
#define post_Comm_create_errhandler(call, rc, function, handler) MADE_HANDLER(call, rc, handler)
#define post_File_create_errhandler(call, rc, function, handler) MADE_HANDLER(call, rc, handler)
#define post_Win_create_errhandler(call, rc, function, handler) MADE_HANDLER(call, rc, handler)
#define post_Errhandler_create(call, rc, function, handler) MADE_HANDLER(call, rc, handler)
#define pre_Errhandler_free(call, handler) freed(ERROR_HANDLER, HANDLE(*(handler)))

/* A buffer of the program's for buffered sends. */
static long long buffer_bytes = -1;
#ifdef MPI_BUFFER_AUTOMATIC
#define post_Buffer_attach(call, rc, buffer, size) ((rc) == MPI_SUCCESS ? (void)(buffer_bytes = (buffer) == MPI_BUFFER_AUTOMATIC ? INT64_MAX : (size)) : (void)0)
#else
#define post_Buffer_attach(call, rc, buffer, size) ((rc) == MPI_SUCCESS ? (void)(buffer_bytes = (size)) : (void)0)
#endif
#define post_Buffer_detach(call, rc, buffer, size) ((rc) == MPI_SUCCESS ? (void)(buffer_bytes = -1) : (void)0)
#define post_Comm_attach_buffer(call, rc, comm, buffer, size) ((rc) == MPI_SUCCESS ? (void)(buffer_bytes = INT64_MAX) : (void)0)
#define post_Session_attach_buffer(call, rc, session, buffer, size) ((rc) == MPI_SUCCESS ? (void)(buffer_bytes = INT64_MAX) : (void)0)

static void check_attached(struct call *call, long long count, MPI_Datatype type, int dest)
{
    if (dest == MPI_PROC_NULL)
        return;
    uint64_t bytes = buffer_bytes >= 0 && type != MPI_DATATYPE_NULL && look_up(DATATYPE, HANDLE(type)).life != FREED ? bytes_of(count, type) : 0;
    if (buffer_bytes < 0)
        report(call, UNBUFFERED, NULL, "no buffer is attached");
    else if (bytes && (long long)bytes + MPI_BSEND_OVERHEAD > buffer_bytes && buffer_bytes)
        report(call, UNBUFFERED, NULL, "%llu bytes and %d of MPI_BSEND_OVERHEAD, of a buffer of %lld", (unsigned long long)bytes, (int)MPI_BSEND_OVERHEAD, buffer_bytes);
}

/* Requests that are complete: those of an array whose handles were so `before`. */
static void pre_Wait(struct call *call, MPI_Request *request, MPI_Status *status)
{
    (void)status;
    check_wait(call, 1, request);
    check_early(call, HANDLE(*request), 0);
}

static void pre_Waitall(struct call *call, int count, MPI_Request *requests, MPI_Status *statuses)
{
    (void)statuses;
    check_wait(call, count, requests);
    for (int i = 0; i < count && open_count; i++)
        check_early(call, HANDLE(requests[i]), 0);
}

static void pre_Start(struct call *call, MPI_Request *request)
{
    started(call, *request);
}

static void pre_Startall(struct call *call, int count, MPI_Request *requests)
{
    for (int i = 0; i < count; i++)
        started(call, requests[i]);
}

#define pre_Cancel(call, request) check_given_up(call, *(request))

static void pre_Request_free(struct call *call, MPI_Request *request)
{
    check_given_up(call, *request);
    close_all(NULL, HANDLE(*request));
    free_pending(HANDLE(*request));
    start_prepared(NULL, HANDLE(*request));
}

/* Buffers whose operations it completes can be used. */
static void post_Request_get_status(struct call *call, int rc, MPI_Request request, int *flag, MPI_Status *status)
{
    (void)call, (void)status;
    if (rc != MPI_SUCCESS || !*flag)
        return;
    close_all(NULL, HANDLE(request));
}

/* Elements are added in place. */
static void pre_Reduce_local(struct call *call, const void *in, void *sum, long long count, MPI_Datatype type, MPI_Op op)
{
    struct extent one = memory_of(in, count, type), other = memory_of(sum, count, type);
    (void)op;
    if (one.start && other.start && overlap(one, other))
        report(call, ALIASED, NULL, "inbuf and inoutbuf overlap");
}

/* Point to point. In strict mode a send that receives, too, waits for its receiver. */
#define STRICT_SENDRECV(name, number, receive_by, send_by) \
    static int name(const void *sendbuf, number sendcount, MPI_Datatype sendtype, int dest, int sendtag, void *recvbuf, number recvcount, \
                    MPI_Datatype recvtype, int source, int recvtag, MPI_Comm comm, MPI_Status *status) \
    { \
        MPI_Request receive, send; \
        int rc = receive_by(recvbuf, recvcount, recvtype, source, recvtag, comm, &receive), other; \
        if (rc != MPI_SUCCESS) \
            return rc; \
        rc = send_by(sendbuf, sendcount, sendtype, dest, sendtag, comm, &send); \
        if (rc == MPI_SUCCESS) \
            rc = PMPI_Wait(&send, MPI_STATUS_IGNORE); \
        else \
            PMPI_Cancel(&receive); \
        other = PMPI_Wait(&receive, status); \
        return rc != MPI_SUCCESS ? rc : other; \
    }

STRICT_SENDRECV(strict_sendrecv, int, PMPI_Irecv, PMPI_Issend)
#ifdef PMPI_Sendrecv_c
STRICT_SENDRECV(strict_sendrecv_c, MPI_Count, PMPI_Irecv_c, PMPI_Issend_c)
#endif

static void pre_Isend(struct call *call, const void *buf, long long count, MPI_Datatype type, int dest, int tag, MPI_Comm comm, MPI_Request *request)
{
    (void)tag, (void)comm, (void)request;
    if (dest != MPI_PROC_NULL)
        check_open(call, "the send buffer", memory_of(buf, count, type), 0);
}

static void pre_Send(struct call *call, const void *buf, long long count, MPI_Datatype type, int dest, int tag, MPI_Comm comm)
{
    (void)tag, (void)comm;
    if (dest != MPI_PROC_NULL)
        check_open(call, "the send buffer", memory_of(buf, count, type), 0);
}

static void pre_Irecv(struct call *call, void *buf, long long count, MPI_Datatype type, int source, int tag, MPI_Comm comm, MPI_Request *request)
{
    (void)tag, (void)comm, (void)request;
    if (source != MPI_PROC_NULL)
        check_open(call, "the receive buffer", memory_of(buf, count, type), 1);
}

static void pre_Recv(struct call *call, void *buf, long long count, MPI_Datatype type, int source, int tag, MPI_Comm comm, MPI_Status *status)
{
    (void)tag, (void)comm, (void)status;
    if (source != MPI_PROC_NULL)
        check_open(call, "the receive buffer", memory_of(buf, count, type), 1);
}

static void post_Isend(struct call *call, int rc, const void *buf, long long count, MPI_Datatype type, int dest, int tag, MPI_Comm comm, MPI_Request *request)
{
    (void)tag, (void)comm;
    if (rc == MPI_SUCCESS && dest != MPI_PROC_NULL)
        open_request(call, *request, memory_of(buf, count, type), 0);
}

static void post_Irecv(struct call *call, int rc, void *buf, long long count, MPI_Datatype type, int source, int tag, MPI_Comm comm, MPI_Request *request)
{
    (void)tag, (void)comm;
    if (rc == MPI_SUCCESS && source != MPI_PROC_NULL)
        open_request(call, *request, memory_of(buf, count, type), 1);
}

static void pre_Sendrecv_replace(struct call *call, void *buf, long long count, MPI_Datatype type, int dest, int sendtag, int source, int recvtag, MPI_Comm comm, MPI_Status *status)
{
    (void)sendtag, (void)recvtag, (void)comm, (void)status;
    if (dest != MPI_PROC_NULL || source != MPI_PROC_NULL)
        check_open(call, "the buffer", memory_of(buf, count, type), source != MPI_PROC_NULL);
}

#define pre_Ssend pre_Send
#define pre_Bsend(call, buf, count, type, dest, tag, comm) (pre_Send(call, buf, count, type, dest, tag, comm), check_attached(call, count, type, dest))
#define pre_Rsend pre_Send
#define pre_Issend pre_Isend
#define pre_Ibsend(call, buf, count, type, dest, tag, comm, request) \
    (pre_Isend(call, buf, count, type, dest, tag, comm, request), check_attached(call, count, type, dest))
#define pre_Irsend pre_Isend
#define post_Issend post_Isend
#define post_Ibsend post_Isend
#define post_Irsend post_Isend
