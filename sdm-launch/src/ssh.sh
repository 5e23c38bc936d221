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

remote="exec /bin/sh -c 'read -r length; script=\$(head -c \"\$length\"); eval \"\$script\"' sdm-launch-ssh"
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
        eval "$ssh -- \"\$host\" \"\$remote\"" <"$folder/$number" 3<&- || code=$?
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
    SDM_SERVER_ID=$id SDM_LOCAL_INDEX=$index "$@" 3<&- &
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
