//! Open MPI's all-reduce over the RDMA of four devices, as Debian 12 packs it: each rank is on a node of its own. By hand:
//! `cargo test -p device --test all all_reduce -- --ignored --nocapture`.

use crate::programs::support::{target, Check, DEVICE, SERVER};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

const WORKERS: [&str; 3] = ["worker-1", "worker-2", "worker-3"];

/// Each rank looks whether every sum is right.
const PROGRAM: &str = r#"
#include <mpi.h>
#include <stdio.h>
enum { COUNT = 20000 };
static float mine[COUNT], sum[COUNT];
int main(int argc, char **argv) {
    int rank, size, wrong = 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    for (int i = 0; i < COUNT; i++) mine[i] = rank + i % 7;
    MPI_Allreduce(mine, sum, COUNT, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
    for (int i = 0; i < COUNT; i++) wrong += sum[i] != size * (size - 1) / 2 + size * (i % 7);
    printf("rank %d of %d: %d sums are wrong\n", rank, size, wrong);
    MPI_Finalize();
    return wrong != 0;
}
"#;

/// Gets what mpirun and this program need into the current folder. mpirun starts the other nodes' daemons by a program in rsh's place:
/// ours hands the command to the node, which waits for it, and gets its exit status.
const FETCH: &str = r#"
rm -rf root *.deb *.todo *.done && mkdir root
apt-get download openmpi-bin openmpi-common libopenmpi3 libopenmpi-dev libucx0 libpmix2 libmunge2 libhwloc15 \
    libevent-core-2.1-7 libevent-pthreads-2.1-7
for package in *.deb; do dpkg-deb -x $package root; done && rm *.deb
lib=$PWD/root/usr/lib/$(uname -m)-linux-gnu
cc all_reduce.c -o all_reduce -I$lib/openmpi/include -L$lib/openmpi/lib -lmpi -Wl,-rpath-link,$lib
echo '#!/bin/sh
node=$1; shift; echo "$*" >$node.todo; exit $(cat $node.done)' >agent && chmod +x agent
"#;

/// Runs in the folder. Allreduce's fourth algorithm is the ring; what is of the host's own, such as shared memory, is not for UCX.
const RUN: &str = r#"
mkfifo $WORKERS
lib=$PWD/root/usr/lib/$(uname -m)-linux-gnu
export OPAL_PREFIX=$PWD/root/usr LD_LIBRARY_PATH=$lib:${LD_LIBRARY_PATH-} PATH=$PWD/root/usr/bin:$PATH
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 UCX_TLS=rc,ud,self UCX_UD_ETH_DGID_CHECK=n
exec "$@"
"#;
const MPIRUN: &str = "mpirun.openmpi --host localhost,worker-1,worker-2,worker-3 --mca plm_rsh_agent ./agent \
                      --mca plm_rsh_no_tree_spawn 1 --mca btl self --mca pml ucx --mca pml_ucx_tls any \
                      --mca pml_ucx_devices any --mca coll_tuned_use_dynamic_rules 1 \
                      --mca coll_tuned_allreduce_algorithm 4 ./all_reduce";

/// The folder with the packages and the program.
fn fetched() -> PathBuf {
    let folder = target().join("device/mpi");
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("all_reduce.c"), PROGRAM).unwrap();
    let fetched = Command::new("sh").args(["-euc", FETCH]).current_dir(&folder).status().unwrap();
    assert!(fetched.success(), "not run: apt-get does not get Open MPI, or it is not that of Debian 12");
    folder
}

fn ran(folder: &Path) -> Check {
    let fifos = WORKERS.map(|node| format!("{node}.todo {node}.done")).join(" ");
    let mut command = Command::new("sh");
    command.args(["-euc", RUN, "sh", DEVICE, "exec", "--name=test-mpi", "--deadline=120", "--grace=3"]);
    command.args(["--server", MPIRUN]).env("WORKERS", fifos).current_dir(folder);
    for node in WORKERS {
        command.arg("--node").arg(format!("{node}=sh -c 'sh {node}.todo; echo $? >{node}.done'"));
    }
    let output = command.output().unwrap();
    let said = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
    assert!(output.status.success(), "{said}");
    Check::read(&target().join("device/runs/test-mpi/wire.pcapng"), said)
}

#[test]
#[ignore = "needs apt-get to download Open MPI 4 and UCX, and a C compiler"]
fn open_mpis_all_reduce_runs_on_four_nodes() {
    let ran = ran(&fetched());
    for rank in 0..=WORKERS.len() {
        ran.logs(SERVER, &format!("rank {rank} of 4: 0 sums are wrong"));
    }
    // Each has sent to its neighbour what it knew, in messages of many packets, and to nobody else.
    let (mut nodes, mut messages) = (BTreeMap::new(), BTreeSet::new());
    ran.each_packet(|node, packet| {
        nodes.insert(packet.datagram.src, node.to_owned());
        if packet.name() == "RC Send First" {
            messages.insert((packet.datagram.src, packet.datagram.dst));
        }
    });
    let named = messages.iter().map(|(from, to)| [nodes[from].as_str(), nodes[to].as_str()]);
    let ring = BTreeSet::from([
        [SERVER, WORKERS[0]],
        [WORKERS[0], WORKERS[1]],
        [WORKERS[1], WORKERS[2]],
        [WORKERS[2], SERVER],
    ]);
    assert_eq!(named.collect::<BTreeSet<_>>(), ring, "{}", ran.outcome);
}
