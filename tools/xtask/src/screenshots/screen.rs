//! A screen in memory, with Wireshark on it.

use super::Place;
use crate::output;
use anyhow::{bail, ensure, Context, Result};
use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::thread::sleep;
use std::time::{Duration, Instant};

/// Pixels: wide enough for the steps in the packet list, small enough to be read in a page.
const SIZE: &str = "1280x860x24";
/// Below the last line of a tree that is still closed. A click there moves the keyboard to the tree.
const TREE: (&str, &str) = ("200", "800");

/// What Wireshark remembers of its window: no toolbar, a list of so many lines, the widths of its parts and of the columns, each
/// by its content as the profile's preferences have it.
const RECENT: &str = include_str!("recent.txt");

/// How long a program may take to do what it was asked to.
const DEADLINE: Duration = Duration::from_secs(60);
/// How long the picture must stay the same to be taken for finished.
const STILL: Duration = Duration::from_millis(1200);

/// The screen, and a home for the programs on it. Both are gone when this is dropped.
pub struct Screen {
    display: String,
    home: PathBuf,
    /// The window manager first: it must not see its screen vanish.
    programs: Vec<Program>,
}

/// A program that ends when this is dropped.
struct Program(Child);

impl Drop for Program {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        self.programs.clear();
        let _ = fs::remove_dir_all(&self.home);
    }
}

/// What to do if a program cannot be run.
pub fn missing(program: &str) -> String {
    format!(
        "cannot run {program}. The pictures need: apt-get install wireshark tshark xvfb matchbox-window-manager xdotool \
         imagemagick pngquant"
    )
}

impl Screen {
    /// Opens the screen, and installs the profile for the programs on it.
    pub fn open(profile: &Path) -> Result<Screen> {
        let home = std::env::temp_dir().join(format!("wireshark-pictures-{}", std::process::id()));
        fs::DirBuilder::new().mode(0o700).create(&home).with_context(|| format!("cannot make {}", home.display()))?;
        let mut screen = Screen { display: String::new(), home, programs: Vec::new() };
        let folder = screen.home.join("profiles/rdma");
        fs::create_dir_all(&folder)?;
        for entry in fs::read_dir(profile)? {
            let entry = entry?;
            fs::copy(entry.path(), folder.join(entry.file_name()))?;
        }
        screen.start()?;
        Ok(screen)
    }

    fn start(&mut self) -> Result<()> {
        let mut server = Command::new("Xvfb");
        // The server chooses a number that is free, and prints it when it is ready.
        server.args(["-displayfd", "1", "-screen", "0", SIZE, "-nolisten", "tcp"]);
        server.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut server = Program(server.spawn().with_context(|| missing("Xvfb"))?);
        let stdout = server.0.stdout.take().context("the output of Xvfb is a pipe")?;
        let (sender, receiver) = mpsc::channel();
        std::thread::spawn(move || sender.send(BufReader::new(stdout).lines().next()));
        let number = receiver.recv_timeout(DEADLINE).ok().flatten().context("Xvfb says no display number")??;
        self.display = format!(":{number}");
        let manager = self.spawn(self.command("matchbox-window-manager").args(["-use_titlebar", "no"]))?;
        self.programs = vec![manager, server];
        Ok(())
    }

    /// A command that sees this screen and this home, and nothing of the person who runs it.
    pub fn command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        command
            .env("DISPLAY", &self.display)
            .env("HOME", &self.home)
            .env("XDG_RUNTIME_DIR", &self.home)
            .env("WIRESHARK_CONFIG_DIR", &self.home)
            .env("LC_ALL", "C.UTF-8")
            .env_remove("WAYLAND_DISPLAY")
            .stdin(Stdio::null());
        command
    }

    fn spawn(&self, command: &mut Command) -> Result<Program> {
        let program = command.get_program().to_string_lossy().into_owned();
        let child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn();
        Ok(Program(child.with_context(|| missing(&program))?))
    }

    /// Takes a picture of Wireshark with a packet selected and its tree open at a place.
    pub fn picture(&self, capture: &Path, packet: &str, place: &Place, file: &Path) -> Result<()> {
        let upper = 50 + 17 * place.rows;
        let sizes = [("{upper}", upper), ("{info}", place.info), ("{step}", place.step)];
        let recent = sizes.iter().fold(RECENT.to_string(), |text, (name, size)| text.replace(name, &size.to_string()));
        fs::write(self.home.join("profiles/rdma/recent"), recent)?;
        let mut wireshark = self.command("wireshark");
        wireshark.args(["-C", "rdma", "-Y", &place.filter, "-J", packet, "-r"]).arg(capture);
        let _wireshark = self.spawn(&mut wireshark)?;
        let title = capture.file_name().unwrap_or_default().to_string_lossy();
        self.wait_for_window(&title)?;
        self.wait_until_still()?;
        let mut hand = self.command("xdotool");
        hand.args(["mousemove", TREE.0, TREE.1, "click", "1"]);
        // From below, so that the line comes to the top.
        let (up, down) = (place.lines - 1 - place.top, place.field - place.top);
        let keys =
            [("Home", 1), ("Down", place.infiniband), ("shift+Right", 1), ("End", 1), ("Up", up), ("Down", down)];
        for (key, times) in keys.iter().filter(|(_, times)| *times > 0) {
            hand.args(["key", "--delay", "20", "--repeat", &times.to_string(), key]);
        }
        // Where it lies, the pointer would mark a line.
        output(hand.args(["mousemove", "800", "10"]))?;
        self.wait_until_still()?;
        self.save(file)
    }

    fn wait_for_window(&self, title: &str) -> Result<()> {
        let end = Instant::now() + DEADLINE;
        while Instant::now() < end {
            // Fails as long as there is no such window.
            if output(self.command("xdotool").args(["search", "--onlyvisible", "--name", title])).is_ok() {
                return Ok(());
            }
            sleep(Duration::from_millis(300));
        }
        bail!("Wireshark showed no window {title} within {} s; try `wireshark {title}`", DEADLINE.as_secs())
    }

    fn wait_until_still(&self) -> Result<()> {
        let end = Instant::now() + DEADLINE;
        let (mut last, mut since) = (self.pixels()?, Instant::now());
        while since.elapsed() < STILL {
            ensure!(Instant::now() < end, "the screen did not come to rest within {} s", DEADLINE.as_secs());
            sleep(Duration::from_millis(200));
            let now = self.pixels()?;
            if now != last {
                (last, since) = (now, Instant::now());
            }
        }
        Ok(())
    }

    fn pixels(&self) -> Result<Vec<u8>> {
        let output = self.command("import").args(["-window", "root", "ppm:-"]).output();
        let output = output.with_context(|| missing("import"))?;
        ensure!(output.status.success(), "import failed: {}", String::from_utf8_lossy(&output.stderr).trim());
        Ok(output.stdout)
    }

    /// Few colors are enough for a window, and make a small file.
    fn save(&self, file: &Path) -> Result<()> {
        let full = self.home.join("picture.png");
        output(self.command("import").args(["-window", "root", "-strip"]).arg(&full))?;
        output(
            self.command("pngquant").args(["--force", "--strip", "--output"]).arg(file).args(["64", "--"]).arg(&full),
        )?;
        let readable = fs::Permissions::from_mode(0o644);
        File::open(file)?.set_permissions(readable)?;
        Ok(())
    }
}
