# Says which ranks run below a proxy of Hydra on this host: rank, pid, number of ranks, program. $1 is the
# address of the mpiexec that they belong to, $2 the number of the proxy.
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
    for pid in $(cd /proc && echo [0-9]*); do
        stat=$(cat "/proc/$pid/stat" 2>/dev/null) || continue
        set -- ${stat##*)}
        [ "$2" = "$proxy" ] && [ -O "/proc/$pid" ] || continue
        rank=$(value "$pid" PMI_RANK)
        [ -n "$rank" ] || rank=$(value "$pid" PMI_ID)
        [ -n "$rank" ] || continue
        size=$(value "$pid" PMI_SIZE)
        printf '%s\t%s\t%s\t%s\n' "$rank" "$pid" "${size:-0}" "$(words "$pid" cmdline | head -n 1)"
    done
done
echo end
