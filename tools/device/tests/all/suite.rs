//! rdma-core's own test suite on the device, in the version of the distribution: its Python tests, which Debian and Ubuntu have in
//! the package python3-pyverbs. By hand: `cargo test -p device --test all suite -- --ignored --nocapture`.

use crate::kernel::LAB;
use crate::programs::support::{target, DEVICE};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Gets the package into the current folder, with the tests as they were before they were packed; and a program `ip` that says that
/// the device's network interface has the node's address, of which loopback's knows nothing.
const FETCH: &str = r#"
rm -rf root tests bin && mkdir bin
apt-get download python3-pyverbs
dpkg-deb -x python3-pyverbs_*.deb root && rm python3-pyverbs_*.deb
cp -r root/usr/share/doc/rdma-core/tests tests && find tests -name '*.gz' -exec gunzip {} +
cat > bin/ip <<'END'
#!/bin/sh
echo '[{"ifname":"'$4'","address":"00:00:00:00:00:00","addr_info":[{"family":"inet","local":"'$SERVER'"}]}]'
END
chmod +x bin/ip
"#;
const RUN: &str = "PATH=$PWD/bin:$PATH PYTHONPATH=$PWD/root/usr/lib/python3/dist-packages \
                   exec /usr/bin/python3 tests/run_tests.py --dev rxe0 --gid 0 -v";
/// On rdma_rxe, with the GID of an IPv4 address.
const RUN_ON_RXE: &str = "/usr/bin/python3 tests/run_tests.py --dev rxe0 --gid 1 -v";

/// Why a test is skipped: a part of what it says, and what is behind it.
const SKIPPED: &[(&str, &str)] = &[
    ("MLX5", "is for hardware of NVIDIA"),
    ("mlx5", "is for hardware of NVIDIA"),
    ("EFA", "is for hardware of Amazon"),
    ("dmabuf", "memory of graphics cards"),
    ("cuda-python", "memory of graphics cards"),
    ("PCI device", "there is none"),
    ("huge pages", "the machine has none"),
    ("ODP", "on-demand paging"),
    ("Device memory", "rxe's provider has none"),
    ("XRCD", "XRC"),
    ("QP type", "XRC"),
    ("Raw Packet QP", "queue pairs below RoCE"),
    ("Parent Domain", "rxe's provider has none"),
    ("Extended CQ", "flags that rxe's provider does not know"),
    ("Rereg MR", "with other addresses"),
    ("real time", "there is no clock"),
    ("Importing a device", "rxe's provider cannot"),
    ("gid indices", "the one GID is always there"),
];

/// The folder with the package.
fn fetched() -> PathBuf {
    let folder = target().join("device/suite");
    fs::create_dir_all(&folder).unwrap();
    let fetched = Command::new("sh").args(["-euc", FETCH]).current_dir(&folder).status().unwrap();
    assert!(fetched.success(), "not run: apt-get does not get python3-pyverbs");
    folder
}

/// What became of each test: ok, ERROR, FAIL, or skipped and why. Warnings may be between its name and that.
fn results(text: &str) -> BTreeMap<String, String> {
    let (mut name, mut results) = (String::new(), BTreeMap::new());
    for line in text.lines() {
        if line.starts_with("test_") {
            name = line.split(" ...").next().unwrap_or_default().to_owned();
        }
        let end = line.rsplit("... ").next().unwrap_or_default();
        if ["ok", "ERROR", "FAIL"].contains(&end) || end.starts_with("skipped ") {
            results.insert(name.clone(), end.to_owned());
        }
    }
    results
}

/// Runs the suite on the device; what it printed.
fn on_the_device(folder: &Path) -> String {
    let output = Command::new(DEVICE).args(["run", "--", "sh", "-c", RUN]).current_dir(folder).output().unwrap();
    let text = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
    assert!(output.status.success(), "{text}");
    text
}

#[test]
#[ignore = "needs python3, and apt-get to download python3-pyverbs with the tests in it"]
fn rdma_cores_own_tests_pass() {
    let text = on_the_device(&fetched());
    let results = results(&text);
    let passed = results.values().filter(|result| *result == "ok").count();
    let mut skipped: BTreeMap<&str, usize> = BTreeMap::new();
    for reason in results.values().filter_map(|result| result.strip_prefix("skipped ")) {
        let known = SKIPPED.iter().find(|(part, _)| reason.contains(part)).unwrap_or_else(|| panic!("new: {reason}"));
        *skipped.entry(known.1).or_default() += 1;
    }
    println!("{passed} tests passed; skipped: {skipped:#?}");
    assert!(passed > 80, "{text}");
}

/// In the lab, with this machine's Python.
#[test]
#[ignore = "needs python3, and apt-get to download python3-pyverbs with the tests in it"]
fn what_passes_on_rdma_rxe_is_not_skipped() {
    /// It wants an entry of the table of GIDs that is empty.
    const EMPTY_GID: &str = "test_query_gid_ex_bad_flow";
    let folder = fetched();
    let packages = folder.join("root/usr/lib/python3/dist-packages/pyverbs");
    let python =
        Command::new("/usr/bin/python3").args(["-c", "import os; print(os.path.dirname(os.__file__))"]).output();
    let python = String::from_utf8(python.unwrap().stdout).unwrap();
    let mut lab = Command::new(target().join("debug").join(LAB));
    lab.args(["exec", "--name=suite", "--memory=1024", "--deadline=600", "--server", RUN_ON_RXE]).current_dir(&folder);
    lab.args(["--bring", "tests", "--bring", python.trim()]);
    // First of all its own Python, which a script asks env for.
    lab.env("PATH", format!("/usr/bin:{}", std::env::var("PATH").unwrap()));
    lab.arg("--bring").arg(format!("{}:/usr/lib/python3/dist-packages/pyverbs", packages.display()));
    let output = lab.output().unwrap();
    let log = fs::read_to_string(target().join("lab/runs/suite/server.log")).unwrap_or_default();
    let (rxe, device) = (results(&log), results(&on_the_device(&folder)));
    let passed: Vec<_> = rxe.iter().filter(|(_, result)| *result == "ok").map(|(name, _)| name).collect();
    assert!(passed.len() > 70, "{log}{}", String::from_utf8_lossy(&output.stderr));
    let skipped: Vec<_> = passed.iter().filter(|name| device[**name] != "ok").collect();
    println!("{} tests pass on rdma_rxe; of these the device skips {skipped:?}", passed.len());
    assert!(skipped.iter().all(|name| name.starts_with(EMPTY_GID)), "{skipped:?}");
}
