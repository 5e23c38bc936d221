//! Tests whose set-up needs root: hosts in network namespaces with an sshd each, Slurm and Grid Engine. `sdm` itself
//! runs as an ordinary user in them as well.

mod gridengine_cluster;
mod neighbours;
mod neighbours_gdb;
mod openmpi5;
mod pmix_neighbour;
mod session_key;
mod slurm;
mod slurm_agent;
mod slurm_cluster;
mod slurm_editor;
mod slurm_elsewhere;
mod slurm_screen;
mod ssh;
mod ssh_agent;
mod ssh_cluster;
mod ssh_editor;
mod ssh_page;
mod tunnel;
