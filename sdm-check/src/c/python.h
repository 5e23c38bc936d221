/* The place of a Python program's call: its own line, in place of the library that calls MPI for it. */
enum { PYTHON_PLACES_MAX = 8192, PYTHON_TEXT = 96 };
static char python_places[PYTHON_PLACES_MAX][PYTHON_TEXT];
static int python_count;

/* Functions of Python's own library, which the program has, or not. */
static struct {
    int (*Py_IsInitialized)(void), (*PyGILState_Ensure)(void), (*PyFrame_GetLineNumber)(void *);
    void *(*PyEval_GetFrame)(void), *(*PyFrame_GetCode)(void *), *(*PyObject_GetAttrString)(void *, const char *);
    const char *(*PyUnicode_AsUTF8)(void *);
    void (*PyGILState_Release)(int), (*Py_DecRef)(void *), (*PyErr_Clear)(void);
} python;

static int find_python(void)
{
    static int found = -1;
    if (found >= 0)
        return found;
#define FIND(name) (*(void **)&python.name = dlsym(RTLD_DEFAULT, #name)) != NULL
    return found = FIND(Py_IsInitialized) && FIND(PyGILState_Ensure) && FIND(PyFrame_GetLineNumber) && FIND(PyEval_GetFrame) && FIND(PyFrame_GetCode) &&
                   FIND(PyObject_GetAttrString) && FIND(PyUnicode_AsUTF8) && FIND(PyGILState_Release) && FIND(Py_DecRef) && FIND(PyErr_Clear);
}

/* A place has one address: `told` and others know places by it. Under Python's lock. */
static void *kept_place(const char *file, int line)
{
    char text[PYTHON_TEXT];
    const char *slash = strrchr(file, '/');
    snprintf(text, sizeof text, "%.80s:%d", slash ? slash + 1 : file, line);
    int at = 0;
    while (at < python_count && strcmp(python_places[at], text))
        at++;
    if (at == PYTHON_PLACES_MAX)
        return NULL;
    if (at == python_count)
        strcpy(python_places[python_count++], text);
    return python_places[at];
}

/* The line of the program, where the caller is a module of Python; else null. At its end Python has none. */
static void *python_site(void *from)
{
    Dl_info caller;
    void *place = NULL;
    if (!dladdr(from, &caller) || !caller.dli_fname || !strstr(caller.dli_fname, ".cpython-") || !find_python() || !python.Py_IsInitialized())
        return NULL;
    int state = python.PyGILState_Ensure();
    void *frame = python.PyEval_GetFrame(), *code = frame ? python.PyFrame_GetCode(frame) : NULL;
    void *file = code ? python.PyObject_GetAttrString(code, "co_filename") : NULL;
    const char *name = file ? python.PyUnicode_AsUTF8(file) : NULL;
    if (name)
        place = kept_place(name, python.PyFrame_GetLineNumber(frame));
    else if (code)
        python.PyErr_Clear();
    if (file)
        python.Py_DecRef(file);
    if (code)
        python.Py_DecRef(code);
    python.PyGILState_Release(state);
    return place;
}

/* Lines of Python are in no table of addresses: they are named at once. */
static void name_python_places(char *text, size_t room)
{
    for (char *at = strchr(text, '{'); at; at = strchr(at + 1, '{')) {
        char *place, *end = strchr(at, '}');
        if (!end || sscanf(at, "{%p}", (void **)&place) != 1 || place < python_places[0] || place >= python_places[PYTHON_PLACES_MAX])
            continue;
        size_t length = strlen(place), rest = strlen(end + 1) + 1;
        if (at - text + length + rest > room)
            return;
        memmove(at + length, end + 1, rest);
        memcpy(at, place, length);
    }
}
