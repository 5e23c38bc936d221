# Says which processes of a step of Slurm's run on this node: rank, pid, parent, node, whether MPI is mapped, clock ticks, program. $1 is the number of the
# job, $2 that of the step. Several virtual nodes can be one host: the node's name tells them apart.
PATH=/usr/local/bin:/usr/bin:/bin
node=$SLURMD_NODENAME
for folder in /proc/[0-9]*; do
    # What is another user's may call itself so, too.
    [ -O "$folder" ] || continue
    grep -azqx "SLURM_JOB_ID=$1" "$folder/environ" 2>/dev/null || continue
    grep -azqx "SLURM_STEP_ID=$2" "$folder/environ" 2>/dev/null || continue
    grep -azqx "SLURMD_NODENAME=$node" "$folder/environ" 2>/dev/null || continue
    rank=$(tr '\0' '\n' 2>/dev/null <"$folder/environ" | sed -n 's/^SLURM_PROCID=//p' | head -n 1)
    stat=$(cat "$folder/stat" 2>/dev/null) || continue
    program=$(tr '\0' '\n' 2>/dev/null <"$folder/cmdline" | head -n 1)
    mpi=0
    grep -qs '/libmpi[^/]*\.so' "$folder/maps" && mpi=1
    set -- "$1" "$2" ${stat##*)}
    printf '%s\t%s\t%s\t%s\t%s\t%s\t%s\n' "$rank" "${folder#/proc/}" "$4" "$node" "$mpi" "$((${14} + ${15}))" "$program"
done
echo "end	$node"
