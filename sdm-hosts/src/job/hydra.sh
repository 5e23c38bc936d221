# Says which processes of ranks run on this host: rank, pid, parent, number of ranks, whether MPI is mapped, clock ticks, program;
# before them "proxy" and the pid of the proxy of Hydra that they are below. $1 is the address of the mpiexec that they belong
# to, $2 the number of the proxy.
PATH=/usr/local/bin:/usr/bin:/bin
words() { tr '\0' '\n' 2>/dev/null <"/proc/$1/$2"; }
value() { words "$1" environ | sed -n "s/^$2=//p" | head -n 1; }
address=$1
number=$2
for proxy in $(cd /proc && echo [0-9]*); do
    # What is another user's may call itself so, too.
    [ -O "/proc/$proxy" ] || continue
    [ "$(cat "/proc/$proxy/comm" 2>/dev/null)" = hydra_pmi_proxy ] || continue
    line=" $(words "$proxy" cmdline | tr '\n' ' ') "
    case $line in *" --control-port $address "*) ;; *) continue ;; esac
    case $line in *" --proxy-id $number "*) ;; *) continue ;; esac
    printf 'proxy\t%s\n' "$proxy"
    for pid in $(cd /proc && echo [0-9]*); do
        [ -O "/proc/$pid" ] || continue
        stat=$(cat "/proc/$pid/stat" 2>/dev/null) || continue
        rank=$(value "$pid" PMI_RANK)
        [ -n "$rank" ] || rank=$(value "$pid" PMI_ID)
        [ -n "$rank" ] || continue
        size=$(value "$pid" PMI_SIZE)
        mpi=0
        grep -qs '/libmpi[^/]*\.so' "/proc/$pid/maps" && mpi=1
        set -- ${stat##*)}
        printf '%s\t%s\t%s\t%s\t%s\t%s\t%s\n' "$rank" "$pid" "$2" "${size:-0}" "$mpi" "$((${12} + ${13}))" \
            "$(words "$pid" cmdline | head -n 1)"
    done
done
echo end
