/* Errors that MPI finds itself and that end the job: they are told at the program's call, before the handler that the program has meant
 * ends it. */
static MPI_Errhandler own_comm_handler, own_window_handler;

/* The receives that a call waits for are all of one place: one of them. */
static struct open only_receive(const struct call *call)
{
    struct open found = {0};
    int are_others = 0;
    pthread_mutex_lock(&open_lock);
    for (int i = 0; i < call->request_count; i++)
        for (int j = 0; j < open_count; j++) {
            const struct open *it = &open_requests[j];
            if (it->request != call->requests[i] || !it->is_receive)
                continue;
            are_others |= found.maker && (found.site != it->site || found.maker != it->maker);
            found = *it;
        }
    pthread_mutex_unlock(&open_lock);
    return are_others ? (struct open){0} : found;
}

/* A message is too long; how long, some MPIs say in their text. */
static void tell_truncated(struct call *call, const char *said)
{
    const struct taken *it = &call->taken;
    unsigned long long bytes = 0;
    int source = it->source, tag = it->tag;
    char sent[64] = "", from[64] = "", elements[80];
    const char *sizes = strstr(said, " bytes received but buffer size is");
    while (sizes && sizes > said && sizes[-1] >= '0' && sizes[-1] <= '9')
        sizes--;
    if (sizes && sscanf(sizes, "%llu", &bytes) == 1)
        snprintf(sent, sizeof sent, " of %llu bytes", bytes);
    if (it->status) {
        source = source == MPI_ANY_SOURCE ? it->status->MPI_SOURCE : source;
        tag = tag == MPI_ANY_TAG ? it->status->MPI_TAG : tag;
    }
    if (it->status && source >= 0 && tag >= 0)
        snprintf(from, sizeof from, " from %d with tag %d", source, tag);
    struct open open = only_receive(call);
    if (it->status && it->type != MPI_DATATYPE_NULL) {
        struct signature own = signature_of(it->count, it->type);
        bytes = bytes_of(it->count, it->type);
        name_signature(own, bytes, elements, sizeof elements);
        report(call, TRUNCATED, NULL, own.is_known && own.elements ? "the message%s%s is longer than the receive buffer: %s, %llu bytes" : "the message%s%s is longer than the receive buffer: %s",
               sent, from, elements, bytes);
    } else if (open.maker) {
        snprintf(elements, sizeof elements, ": %td bytes", open.memory.end - open.memory.start);
        report(call, TRUNCATED, open.site, "the message%s%s is longer than the receive buffer of %s at {%p}%s", sent, from, open.maker, open.site, open.memory.layout ? "" : elements);
    } else
        report(call, TRUNCATED, NULL, "a message%s%s is longer than what receives it", sent, from);
}

/* A message came, and was too long. */
static int is_truncated(int code)
{
    int class = MPI_ERR_OTHER;
    PMPI_Error_class(code, &class);
    return class == MPI_ERR_TRUNCATE;
}

/* Of several requests one may have failed in this way: the call is then about that one. Not all MPIs set all errors. */
static int is_truncated_within(struct call *call, int are_set)
{
    int are_there = call->statuses && call->statuses != MPI_STATUSES_IGNORE;
    for (int i = 0; are_there && i < call->request_count; i++)
        if (call->statuses[i].MPI_ERROR == MPI_ERR_TRUNCATE || (are_set && is_truncated(call->statuses[i].MPI_ERROR))) {
            call->requests += i;
            call->request_count = 1;
            call->taken.status = &call->statuses[i];
            return 1;
        }
    return 0;
}

static void tell_fatal(int code)
{
    int class = MPI_ERR_OTHER, length = 0;
    char text[MPI_MAX_ERROR_STRING + 1] = "";
    if (depth == 0 || !current || current->is_told)
        return;
    PMPI_Error_class(code, &class);
    PMPI_Error_string(class, text, &length);
    for (char *it = text; *it; it++)
        if (*it == '\n' || *it == '{')
            *it = ' ';
    int is_one = (class == MPI_ERR_TRUNCATE || class == MPI_ERR_IN_STATUS) && is_truncated_within(current, class == MPI_ERR_IN_STATUS);
    if (is_one || class == MPI_ERR_TRUNCATE)
        tell_truncated(current, text);
    else
        report(current, REFUSED, NULL, "MPI refuses the call: %.200s", text);
}

/* A call returns an error, and the program goes on: it is told where the call must not be made so. Others, as that a file is missing or a
 * message too long, may be meant, or have a check of their own. */
static void tell_returned(struct call *call, int code)
{
    const int misuses[] = {MPI_ERR_COUNT, MPI_ERR_TAG, MPI_ERR_COMM, MPI_ERR_RANK, MPI_ERR_ROOT, MPI_ERR_GROUP, MPI_ERR_OP, MPI_ERR_TOPOLOGY, MPI_ERR_DIMS,
                           MPI_ERR_ARG, MPI_ERR_REQUEST, MPI_ERR_WIN, MPI_ERR_DISP, MPI_ERR_LOCKTYPE, MPI_ERR_ASSERT, MPI_ERR_RMA_RANGE, MPI_ERR_KEYVAL, MPI_ERR_AMODE, MPI_ERR_TYPE,
                           MPI_ERR_BUFFER, MPI_ERR_INFO_KEY, MPI_ERR_INFO_VALUE};
    int class = MPI_ERR_OTHER, length = 0;
    char text[MPI_MAX_ERROR_STRING + 1] = "";
    if (depth != 1 || call->is_told || !initialized || finalized)
        return;
    PMPI_Error_class(code, &class);
    /* A null type is refused where nothing is sent, too, and a null buffer. */
    if (class == MPI_ERR_TYPE ? !!strncmp(call->name, "MPI_Type_", 9) : class == MPI_ERR_BUFFER ? !strstr(call->name, "bsend") && !strstr(call->name, "Bsend") : 0)
        return;
    for (size_t i = 0; i < sizeof misuses / sizeof *misuses; i++)
        if (class == misuses[i]) {
            PMPI_Error_string(class, text, &length);
            for (char *it = text; *it; it++)
                if (*it == '\n' || *it == '{')
                    *it = ' ';
            report(call, REFUSED, NULL, "MPI refuses the call, which returns: %.200s", text);
        }
}

static void on_comm_error(MPI_Comm *comm, int *code, ...)
{
    tell_fatal(*code);
    PMPI_Comm_set_errhandler(*comm, MPI_ERRORS_ARE_FATAL);
    PMPI_Comm_call_errhandler(*comm, *code);
}

static void on_window_error(MPI_Win *window, int *code, ...)
{
    tell_fatal(*code);
    PMPI_Win_set_errhandler(*window, MPI_ERRORS_ARE_FATAL);
    PMPI_Win_call_errhandler(*window, *code);
}

static void begin_handlers(void)
{
    MPI_Comm all[] = {MPI_COMM_WORLD, MPI_COMM_SELF};
    PMPI_Comm_create_errhandler(on_comm_error, &own_comm_handler);
    PMPI_Win_create_errhandler(on_window_error, &own_window_handler);
    for (int i = 0; i < 2; i++) {
        MPI_Errhandler before;
        PMPI_Comm_get_errhandler(all[i], &before);
        if (before == MPI_ERRORS_ARE_FATAL)
            PMPI_Comm_set_errhandler(all[i], own_comm_handler);
    }
}

static void begin_window(MPI_Win window)
{
    PMPI_Win_set_errhandler(window, own_window_handler);
    begin_epochs(window);
}

/* The program sees and sets MPI's own. One that it has created it must free once more. */
static void hide_handler(struct call *call, MPI_Errhandler *handler)
{
    pthread_mutex_lock(&objects_lock);
    struct object *it = find(ERROR_HANDLER, HANDLE(*handler));
    int is_freed = it->life == FREED;
    it->count += it->life == LIVE;
    pthread_mutex_unlock(&objects_lock);
    if (is_freed)
        made(call, ERROR_HANDLER, HANDLE(*handler), 0);
    if (*handler != own_comm_handler && *handler != own_window_handler)
        return;
    MPI_Errhandler own = *handler;
    PMPI_Errhandler_free(&own);
    *handler = MPI_ERRORS_ARE_FATAL;
}

#define post_Comm_get_errhandler(call, rc, comm, handler) ((rc) == MPI_SUCCESS && initialized ? hide_handler(call, handler) : (void)0)
#define post_Win_get_errhandler(call, rc, win, handler) ((rc) == MPI_SUCCESS && initialized ? hide_handler(call, handler) : (void)0)
#define post_File_get_errhandler post_Win_get_errhandler
#define post_Errhandler_get post_Comm_get_errhandler
#define pre_Comm_set_errhandler(call, comm, handler) (check_handler(call, handler), (handler) = (handler) == MPI_ERRORS_ARE_FATAL ? own_comm_handler : (handler))
#define pre_Win_set_errhandler(call, win, handler) (check_handler(call, handler), (handler) = (handler) == MPI_ERRORS_ARE_FATAL ? own_window_handler : (handler))
#define pre_Errhandler_set pre_Comm_set_errhandler
