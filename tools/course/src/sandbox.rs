//! Where the programs of strangers are built and run: bubblewrap (bwrap(1)) puts them into a root folder that has nothing in it but the
//! system's programs and libraries, what set-up has unpacked, and the one folder that was handed in. They have processes, a network
//! and a /tmp of their own, of the environment what is named here, and limits of time, memory, processes and files.
//!
//! A compiler gets the same, because a source can ask it to read any file. It can write to that folder, and to cargo's; a
//! program can't write to either. The kernel limits nothing of root's, so if root grades, they run as a user that owns nothing.
//!
//! All that is two scripts where the results are. What is inside has the same paths on every machine: `/mine` is what was handed in.
//! A program's RDMA goes through the device's supervisor, which is outside.

use crate::forbidden;
use crate::project::Project;
use anyhow::{bail, ensure, Context, Result};
use run::files::write;
use run::waiting::wait_for;
use rustix::fs::{flock, FlockOperation};
use std::env;
use std::fs::{self, File, Permissions};
use std::ops::Range;
use std::os::unix::fs::{chown, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Where the folder is that was handed in.
pub const INSIDE: &str = "/mine";
/// Where the course's library is, for programs in Rust.
pub const COURSE: &str = "/course";
/// Where cargo builds. Nothing of an earlier student may be left there.
const TARGET: &str = "/target";
/// What set-up has unpacked; the compiler of Rust; and what cargo has fetched.
const TOOLS: &str = "/tools";
const TOOLCHAIN: &str = "/toolchain";
const CARGO: &str = "/cargo";

/// Who runs what root is asked to grade: users that neither Debian nor systemd gives to anybody. Each grader of a project takes one for itself, because
/// the kernel counts a user's processes, and a fork bomb here would leave none to programs that somebody else grades.
const USERS: Range<u32> = 65520..65534;

/// What a program may use: seconds of processor time, bytes of memory for a process, processes, bytes of a file, open files, no core.
const RUN: [&str; 6] =
    ["--cpu=20", "--as=2147483648", "--nproc=64", "--fsize=67108864", "--nofile=1024:1024", "--core=0"];
/// The same for a compiler.
const BUILD: [&str; 6] =
    ["--cpu=300", "--as=8589934592", "--nproc=512", "--fsize=268435456", "--nofile=1024:1024", "--core=0"];
/// Bytes of /tmp, and of /dev/shm.
const TMP: &str = "67108864";
/// The descriptor by which bubblewrap gets the filter of system calls.
const FILTER: &str = "9";

/// Variables that the device gives a program, and the judge. No other comes in.
const GIVEN: [&str; 5] = ["NIC_RUN", "NIC_NAME", "LOG_SOURCE", "RUST_LOG", "GLIBC_TUNABLES"];
/// Variables that say where set-up has put libraries and headers.
const UNPACKED: [&str; 8] = [
    "LD_LIBRARY_PATH",
    "PYTHONPATH",
    "LIBRARY_PATH",
    "C_INCLUDE_PATH",
    "CPLUS_INCLUDE_PATH",
    "PKG_CONFIG_PATH",
    "PKG_CONFIG_SYSROOT_DIR",
    "BINDGEN_EXTRA_CLANG_ARGS",
];
/// Files of /etc that libraries and interpreters read.
const ETC: [&str; 6] = ["alternatives", "ld.so.cache", "ld.so.conf", "ld.so.conf.d", "localtime", "python3"];

#[derive(Debug)]
pub struct Sandbox {
    /// The scripts, and cargo's folder.
    folder: PathBuf,
    /// Who runs programs, if root grades.
    user: Option<User>,
}

/// A user that nobody else's programs run as while the file is open.
#[derive(Debug)]
struct User {
    number: u32,
    _taken: File,
}

impl Sandbox {
    /// Writes the scripts, below `folder`, and looks whether programs can be shut in here.
    ///
    /// # Errors
    /// What is missing, and what to do.
    pub fn lay_out(project: &Project, folder: &Path) -> Result<Self> {
        keep_descriptors()?;
        let user = if is_root() { Some(User::take(project)?) } else { None };
        let sandbox = Self { folder: folder.to_owned(), user };
        write(sandbox.path("filter"), forbidden::filter())?;
        let unpacked = env::var_os("RDMA_TOOLS").map(PathBuf::from);
        let rust = sysroot();
        let bwrap = bubblewrap()
            .context("there is no program bwrap. Run `make setup`, which gets it, or install bubblewrap")?;
        for (name, limits) in [("run", RUN), ("build", BUILD)] {
            let is_build = name == "build";
            let mut words = vec![bwrap.display().to_string(), "--clearenv".to_owned()];
            words.extend(strings(["--unshare-pid", "--unshare-net", "--unshare-ipc", "--unshare-uts"]));
            words.extend(strings(["--unshare-cgroup-try", "--die-with-parent", "--new-session", "--seccomp", FILTER]));
            words.extend(if is_root() { privileges() } else { strings(["--unshare-user", "--cap-drop", "ALL"]) });
            words.extend(system(project, folder));
            if let Some(tools) = &unpacked {
                for part in ["usr", "first"].map(|part| tools.join(part)) {
                    words.extend(bound(&part, &format!("{TOOLS}/{}", run::files::name(&part))));
                }
            }
            if let Some(rust) = rust.as_ref().filter(|_| is_build) {
                words.extend(bound(rust, TOOLCHAIN));
                words.extend(library(project));
                words.extend(["--bind".to_owned(), sandbox.target().display().to_string(), TARGET.to_owned()]);
            }
            let mut script = format!(
                "#!/bin/sh\n# Written by `make grade`: runs a command shut in, in the folder that is its first word.\n\
                 folder=$1; shift\n\
                 # When memory is short, the kernel ends these programs first.\n\
                 echo 1000 >/proc/self/oom_score_adj 2>/dev/null\n\
                 exec env -i {} ${{NIC_RUN+NIC_RUN=\"$NIC_RUN\"}} \\\n  {} \\\n  {} \\\n",
                quoted(&libraries()),
                quoted(&words),
                variables(unpacked.as_deref())
            );
            if !is_build {
                script += "  ${NIC_SYSFS:+--ro-bind \"$NIC_SYSFS/sys\" /sys --ro-bind \"$NIC_SYSFS/etc/libibverbs.d\" \
                           /etc/libibverbs.d --ro-bind \"$NIC_SYSFS/dev/infiniband\" /dev/infiniband} \\\n";
            }
            let how = if is_build { "--bind" } else { "--ro-bind" };
            script +=
                &format!("  {how} \"$folder\" {INSIDE} --chdir {INSIDE} --remount-ro /dev --remount-ro / -- \\\n");
            let user = sandbox.user.as_ref().map_or(String::new(), User::becomes);
            script += &format!(
                "  {user} prlimit {} -- \"$@\" {FILTER}<{}\n",
                limits.join(" "),
                quote(&sandbox.path("filter"))
            );
            write(sandbox.path(name), script)?;
            fs::set_permissions(sandbox.path(name), Permissions::from_mode(0o755))?;
        }
        fs::create_dir_all(sandbox.target())?;
        sandbox.give(&sandbox.target())?;
        sandbox.check()?;
        Ok(sandbox)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// Where cargo builds, seen from outside.
    pub fn target(&self) -> PathBuf {
        self.folder.join("target")
    }

    /// Where a compiler says what is wrong.
    pub fn said(&self) -> PathBuf {
        self.path("said")
    }

    /// Lets those inside write to a folder, and to what is in it.
    pub fn give(&self, folder: &Path) -> Result<()> {
        if let Some(User { number, .. }) = self.user {
            for path in run::files::files(folder, |path| !path.is_symlink())? {
                match path.is_dir() {
                    true => self.give(&path)?,
                    false => chown(&path, Some(number), Some(number))?,
                }
            }
            chown(folder, Some(number), Some(number))?;
        }
        Ok(())
    }

    /// A command as it is run in a folder that was handed in. Its own words are those inside.
    pub fn wrapped(&self, folder: &Path, command: &str) -> String {
        format!("{} {} {command}", quote(&self.path("run")), quote(folder))
    }

    /// A compiler that builds in such a folder, for this many seconds.
    pub fn compiler(&self, folder: &Path, seconds: u32, program: &str) -> Command {
        let mut command = Command::new("timeout");
        command.args(["--kill-after=5", &seconds.to_string()]).arg(self.path("build")).arg(folder).arg(program);
        command.stdin(Stdio::null());
        command
    }

    fn check(&self) -> Result<()> {
        let mut command = Command::new(self.path("run"));
        command.arg(&self.folder).arg("true").env_remove("NIC_SYSFS").stdin(Stdio::null());
        let output = command.output().context("cannot start sh")?;
        let said = String::from_utf8_lossy(&output.stderr);
        let hint = match is_root() {
            true => "as root it needs CAP_SYS_ADMIN (capabilities(7)), which containers rarely have, so grade outside a container",
            false => {
                "it needs user namespaces (user_namespaces(7)): `sysctl kernel.unprivileged_userns_clone user.max_user_namespaces \
                 kernel.apparmor_restrict_unprivileged_userns` says whether they are forbidden; allow them, or grade as root"
            }
        };
        ensure!(output.status.success(), "bubblewrap can't make a sandbox on this machine: {}; {hint}", said.trim());
        Ok(())
    }
}

impl User {
    /// One that's free. If none is, it waits for the last one.
    fn take(project: &Project) -> Result<Self> {
        let folder = project.target.join("course/users");
        fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
        for number in USERS {
            let file = folder.join(number.to_string());
            let taken = File::create(&file).with_context(|| format!("cannot make {}", file.display()))?;
            let is_last = number + 1 == USERS.end;
            let why = "another grader of this project to end, because all users for programs are taken";
            let _waiting = is_last.then(|| wait_for(why));
            let how = if is_last { FlockOperation::LockExclusive } else { FlockOperation::NonBlockingLockExclusive };
            if flock(&taken, how).is_ok() {
                return Ok(Self { number, _taken: taken });
            }
        }
        bail!("cannot take a user for the programs, because nothing in {} can be locked. Put CARGO_TARGET_DIR on a file system that \
             has locks", folder.display())
    }

    /// The words that have a command run as this one.
    fn becomes(&self) -> String {
        let Self { number, .. } = self;
        format!("setpriv --reuid={number} --regid={number} --clear-groups --inh-caps=-all")
    }
}

/// Keeps from our children what our own parent had open, and has left open for us: a shell's folder leads out of the sandbox.
fn keep_descriptors() -> Result<()> {
    // SAFETY: no memory is passed, and a descriptor that closes at exec stays as it is for us.
    let kept = unsafe { libc::syscall(libc::SYS_close_range, 3, libc::c_uint::MAX, libc::CLOSE_RANGE_CLOEXEC) };
    ensure!(
        kept == 0,
        "cannot hide open files from programs, because close_range(2) fails. Grading needs Linux 5.11 or later"
    );
    Ok(())
}

fn is_root() -> bool {
    rustix::process::getuid().is_root()
}

/// What root keeps of its rights until it becomes that user.
fn privileges() -> Vec<String> {
    strings(["--cap-drop", "ALL", "--cap-add", "CAP_SETUID", "--cap-add", "CAP_SETGID"])
}

/// The words that lay out the system's part of the root folder. Copies of what was handed in are below `shut_in`.
fn system(project: &Project, shut_in: &Path) -> Vec<String> {
    let mut words = bound(Path::new("/usr"), "/usr");
    // bubblewrap lets nobody but itself into a folder that it makes only because something is in it.
    for folder in ["/etc", TOOLS, CARGO, COURSE, &format!("{COURSE}/common"), "/sys"] {
        words.extend(["--perms", "0755", "--dir", folder].map(str::to_owned));
    }
    for name in ["bin", "sbin", "lib", "lib32", "lib64", "libx32"] {
        let path = Path::new("/").join(name);
        match fs::read_link(&path) {
            Ok(to) => words.extend(["--symlink".to_owned(), to.display().to_string(), path.display().to_string()]),
            Err(_) => words.extend(bound(&path, &path.display().to_string())),
        }
    }
    for path in ETC.map(|name| Path::new("/etc").join(name)) {
        words.extend(bound(&path, &path.display().to_string()));
    }
    // The references, the lessons' programs and what others have handed in, if that is below /usr.
    let hidden = [project.root.as_path(), &project.target, shut_in.parent().unwrap_or(shut_in)];
    for folder in hidden.into_iter().filter(|folder| folder.starts_with("/usr")) {
        words.extend(["--tmpfs".to_owned(), folder.display().to_string()]);
    }
    words.extend(strings(["--proc", "/proc", "--dev", "/dev"]));
    for folder in ["/dev/shm", "/tmp"] {
        words.extend(strings(["--perms", "1777", "--size", TMP, "--tmpfs", folder]));
    }
    words
}

/// What programs in Rust are built with. How the library is tried is none of their business.
fn library(project: &Project) -> Vec<String> {
    let of_course = |part: &str| bound(&project.root.join(part), &format!("{COURSE}/{part}"));
    let home = env::var_os("CARGO_HOME").map(PathBuf::from);
    let home = home.or_else(|| Some(PathBuf::from(env::var_os("HOME")?).join(".cargo")));
    let registry = home.map(|home| bound(&home.join("registry"), &format!("{CARGO}/registry")));
    ["Cargo.toml", "common/Cargo.toml", "common/src", "common/bindgen"]
        .into_iter()
        .flat_map(of_course)
        .chain(registry.into_iter().flatten())
        .collect()
}

/// Where the compiler of Rust is, if there is one.
fn sysroot() -> Option<PathBuf> {
    let output = Command::new("rustc").args(["--print", "sysroot"]).output().ok()?;
    let path = PathBuf::from(String::from_utf8(output.stdout).ok()?.trim());
    path.join("bin/cargo").exists().then_some(path)
}

fn bubblewrap() -> Option<PathBuf> {
    let path = env::var_os("PATH")?;
    env::split_paths(&path).map(|folder| folder.join("bwrap")).find(|file| file.is_file())
}

/// What bubblewrap itself needs of the environment, where it was only unpacked. A process inside can read it.
fn libraries() -> Vec<String> {
    let own = env::var("LD_LIBRARY_PATH").unwrap_or_default();
    let tools = env::var("RDMA_TOOLS").unwrap_or_default();
    let parts: Vec<&str> = own.split(':').filter(|part| !tools.is_empty() && part.starts_with(&tools)).collect();
    vec![format!("LD_LIBRARY_PATH={}", parts.join(":"))]
}

/// The words that give the environment inside.
fn variables(unpacked: Option<&Path>) -> String {
    let inside = |text: String| unpacked.map_or(text.clone(), |tools| text.replace(&*tools.to_string_lossy(), TOOLS));
    let mut all = vec![
        ("PATH".to_owned(), format!("{TOOLS}/first:{TOOLCHAIN}/bin:/usr/local/bin:/usr/bin:/bin:{TOOLS}/usr/bin")),
        ("HOME".to_owned(), "/tmp".to_owned()),
        ("LANG".to_owned(), "C.UTF-8".to_owned()),
        ("RDMA_TOOLS".to_owned(), TOOLS.to_owned()),
        ("CARGO_HOME".to_owned(), CARGO.to_owned()),
        ("CARGO_TARGET_DIR".to_owned(), TARGET.to_owned()),
    ];
    for name in UNPACKED {
        let Ok(value) = env::var(name) else { continue };
        let mut value = inside(value);
        if name.ends_with("PATH") {
            let is_there = |part: &&str| part.starts_with(TOOLS) || part.starts_with("/usr/");
            let mut parts: Vec<String> = value.split(':').filter(is_there).map(str::to_owned).collect();
            if name == "LD_LIBRARY_PATH" {
                parts.extend(parts.clone().into_iter().map(|part| part + "/libibverbs"));
            }
            value = parts.join(":");
        }
        all.push((name.to_owned(), value));
    }
    let fixed = all.into_iter().map(|(name, value)| quoted(&["--setenv".to_owned(), name, value]));
    let given = GIVEN.iter().map(|name| format!("${{{name}+--setenv {name} \"${name}\"}}"));
    fixed.chain(given).collect::<Vec<_>>().join(" ")
}

/// The words that show a path, if it is there, at another one.
fn bound(path: &Path, inside: &str) -> Vec<String> {
    ["--ro-bind-try".to_owned(), path.display().to_string(), inside.to_owned()].to_vec()
}

fn strings<const N: usize>(words: [&str; N]) -> Vec<String> {
    words.map(str::to_owned).to_vec()
}

fn quoted(words: &[String]) -> String {
    words.iter().map(|word| quote(Path::new(word))).collect::<Vec<_>>().join(" ")
}

/// A word for the shell.
fn quote(path: &Path) -> String {
    format!("'{}'", path.display().to_string().replace('\'', r"'\''"))
}
