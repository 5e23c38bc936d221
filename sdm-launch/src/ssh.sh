# Starts the servers of this host, and has other hosts started, by ssh. It reads all from standard input
# and ends what it has started when that ends: then the connection is gone. $script is this text.
read -r fanout
IFS= read -r directory
IFS= read -r ssh
IFS= read -r server
read -r size more
IFS= read -r hosts
environment=
while IFS= read -r line && [ -n "$line" ]; do
    export "$line"
    environment="$environment$line
"
done
# The tools of this script are the system's: anybody may be able to put others where PATH leads. The servers get PATH as it was.
has_path=${PATH+has}
path=${PATH-}
PATH=/usr/local/bin:/usr/bin:/bin
with_path() {
    if [ "$has_path" ]; then PATH=$path; else unset PATH; fi
    exec "$@"
}
exec 3<&0 </dev/null
case $directory in
!*) cd -- "${directory#!}" || exit 1 ;;
*) cd -- "${directory#?}" 2>/dev/null || true ;;
esac

own=${hosts%% *}
others=${hosts#"$own"}
eval "set -- $server"
# For the server where it is not here, and for what is passed on to other hosts.
folder=
if [ "$size" -gt 0 ] || [ -n "$others" ]; then
    folder=$(mktemp -d "${TMPDIR:-/tmp}/sdm.XXXXXXXXXX") || exit 1
fi
if [ "$size" -gt 0 ]; then
    head -c "$size" <&3 >"$folder/sdm-server" && chmod 700 "$folder/sdm-server" || exit 1
    if [ "$more" -gt 0 ]; then
        head -c "$more" <&3 >"$folder/sdm-pmix" && chmod 700 "$folder/sdm-pmix" || exit 1
    fi
    shift
    set -- "$folder/sdm-server" "$@"
fi

# What the first host of a group reads.
tell() {
    printf '%s\n%s' "${#script}" "$script"
    printf '%s\n' "$fanout" "$directory" "$ssh" "$server" "$size $more" "$1" "$environment"
    [ "$size" -eq 0 ] || cat "$folder/sdm-server"
    [ "$more" -eq 0 ] || cat "$folder/sdm-pmix"
}

# Whose servers will not come.
refuse() {
    for entry in $1; do
        id=${entry%%/*}
        rest=${entry#*/}
        end=$((id + ${rest%%/*}))
        while [ "$id" -lt "$end" ]; do
            printf 'SDM1 failed=%s why=ssh %s (from %s) exited with code %s\n' \
                "$id" "$2" "$(hostname)" "$3"
            id=$((id + 1))
        done
    done
}

remote="exec /bin/sh -c 'read -r length; script=\$(PATH=/usr/local/bin:/usr/bin:/bin; head -c \"\$length\"); eval \"\$script\"' sdm-launch-ssh"
# Whether others can put a program into one of these folders; those on the way may be sticky.
is_open() {
    writable="( -perm -002 -o -perm -020 ) $1"
    shift
    open=$(set -f; find "$@" -prune "(" ! -user 0 ! -user "$(id -u)" -o $writable ")") && [ -z "$open" ] && return 1
    return 0
}
find_ssh() {
    set -f
    IFS=:
    for folder in $path; do
        case $folder in /*) ;; *) continue ;; esac
        folder=$(cd -P "$folder" 2>/dev/null && pwd -P) && [ -x "$folder/ssh" ] || continue
        IFS=' '
        is_open "" "$folder" && continue
        set -- /
        above=${folder%/*}
        while [ "$above" ]; do
            set -- "$@" "$above"
            above=${above%/*}
        done
        is_open "! -perm -1000" "$@" && continue
        printf %s "$folder/ssh"
        return
    done
    printf %s /usr/bin/ssh
}
ssh_program=
[ -z "$others" ] || ssh_program=$(find_ssh)
pids=
waits=
feeders=
number=0
start_group() {
    first=${1%% *}
    host=${first##*/}
    number=$((number + 1))
    mkfifo "$folder/$number" || exit 1
    { tell "$1"; exec cat <&3; } >"$folder/$number" &
    feeders="$feeders $!"
    {
        code=0
        (eval "set -- $ssh"; shift; with_path "$ssh_program" "$@" -- "$host" "$remote") \
            <"$folder/$number" 3<&- || code=$?
        [ "$code" -eq 0 ] || refuse "$1" "$host" "$code"
    } &
    waits="$waits $!"
}
count=0
for entry in $others; do count=$((count + 1)); done
size_of_group=$(((count + fanout - 1) / fanout))
group=
in_group=0
for entry in $others; do
    group="$group${group:+ }$entry"
    in_group=$((in_group + 1))
    if [ "$in_group" -eq "$size_of_group" ]; then
        start_group "$group"
        group=
        in_group=0
    fi
done
[ -z "$group" ] || start_group "$group"

id=${own%%/*}
rest=${own#*/}
end=$((id + ${rest%%/*}))
index=0
while [ "$id" -lt "$end" ]; do
    (export SDM_SERVER_ID="$id" SDM_LOCAL_INDEX="$index"; with_path "$@") 3<&- &
    pids="$pids $!"
    id=$((id + 1))
    index=$((index + 1))
done
{ cat <&3; kill $pids; kill -CONT $pids; } >/dev/null 2>&1 &
watcher=$!
exec 3<&-
status=0
for pid in $pids $waits; do
    wait "$pid" || status=$?
done
kill "$watcher" $feeders 2>/dev/null
[ -z "$folder" ] || rm -rf -- "$folder"
exit $status
