//! The system's C++ compiler: finding it, and compiling kernels and the runtime to shared objects.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use libloading::os::unix::Library;
use sha2::{Digest, Sha256};

use super::children;
use crate::KernelSource;
use crate::compile::cache::{Folders, Store};
use crate::compile::hex::hex;
use crate::compile::source::{COMMON_HEADERS, HEADERS};
use crate::error::{ErrorKind, Result};
use crate::interrupt;

/// The runtime's files, in the order in which they make one translation unit.
const RUNTIME: &[(&str, &str)] = &[
    ("fiber.cpp", include_str!("runtime/fiber.cpp")),
    ("model.cpp", include_str!("runtime/model.cpp")),
    ("schedule.cpp", include_str!("runtime/schedule.cpp")),
    ("collectives.cpp", include_str!("runtime/collectives.cpp")),
    ("launch.cpp", include_str!("runtime/launch.cpp")),
];

/// For both: what makes arithmetic the GPU's (wrapping, no contraction), and symbols that stay in
/// their object.
const COMMON: &[&str] = &[
    "-x",
    "c++",
    "-std=c++17",
    "-g0",
    "-w",
    "-fPIC",
    "-shared",
    "-fvisibility=hidden",
    "-fwrapv",
    "-ffp-contract=off",
    "-fno-strict-aliasing",
];
/// Thousands of kernels are compiled for a test run, each run on little data: -O1.
const KERNEL: &[&str] =
    &["-DWF_SIM", "-O1", "-fno-exceptions", "-fno-rtti", "-fno-asynchronous-unwind-tables"];
/// Integers that are divided by zero end the launch, and not the process:
/// UndefinedBehaviorSanitizer calls what `sim.h` defines for it, so that its runtime is not needed.
const OF_USERS: &[&str] = &["-DWF_SIM_USERS", "-fsanitize=integer-divide-by-zero"];
/// What kernels may call besides the runtime, behind their text. A kernel is linked with nothing
/// else: the linker would take as long for C++'s library and AddressSanitizer's, which is in the
/// process already, as the compiler for many a kernel.
const LIBRARIES: [&str; 3] = ["-lm", "-lgcc", "-lc"];
/// The headers of code that users wrote.
const USERS: [&str; 2] = ["raw.cuh", "user.cuh"];
const RUNTIME_ONLY: &[&str] = &["-DWF_SIM_RUNTIME", "-O2", "-pthread"];

#[derive(Debug)]
pub(super) struct CxxCompiler {
    /// Program and its own arguments, as `CXX` may name them.
    command: Vec<String>,
    /// First line of `--version`.
    version: String,
    sanitizes: bool,
    head: OnceLock<Option<KernelHead>>,
}

/// [`COMMON_HEADERS`], compiled ahead, so that GCC does not parse them for each kernel.
#[derive(Debug)]
struct KernelHead {
    /// What `-include` names: GCC reads the file whose name has `.gch` behind it.
    include: PathBuf,
    /// All headers that are in it.
    headers: Vec<&'static str>,
    /// It is of no use: a kernel was compiled without it that was not with it.
    failed: AtomicBool,
}

/// The compiler of this machine, looked for once: `CXX`, else `c++`, `g++`, `clang++`.
///
/// # Errors
/// [`ErrorKind::DeviceUnavailable`] where there is none, or where AddressSanitizer is asked for and
/// not preloaded.
pub(super) fn system() -> Result<&'static CxxCompiler> {
    static FOUND: OnceLock<std::result::Result<CxxCompiler, String>> = OnceLock::new();
    let found = FOUND.get_or_init(|| {
        let candidates = match crate::environment::text("CXX") {
            Ok(named) if !named.trim().is_empty() => vec![named],
            _ => ["c++", "g++", "clang++"].map(String::from).to_vec(),
        };
        find(&candidates, crate::environment::text("WARPFRAME_SIM_ASAN").is_ok_and(|v| v == "1"))
    });
    found.as_ref().map_err(|why| {
        ErrorKind::DeviceUnavailable { device: "sim".into(), why: why.clone() }.into()
    })
}

fn find(candidates: &[String], sanitizes: bool) -> std::result::Result<CxxCompiler, String> {
    for candidate in candidates {
        let command: Vec<String> = candidate.split_whitespace().map(String::from).collect();
        let Ok(output) = Command::new(&command[0]).args(&command[1..]).arg("--version").output()
        else {
            continue;
        };
        if !output.status.success() {
            continue;
        }
        let version = String::from_utf8_lossy(&output.stdout)
            .lines()
            .next()
            .unwrap_or_default()
            .trim()
            .to_string();
        let compiler = CxxCompiler { command, version, sanitizes, head: OnceLock::new() };
        return if sanitizes && !sanitizer_is_loaded() {
            Err(compiler.sanitizer_advice())
        } else {
            Ok(compiler)
        };
    }
    Err(format!(
        "it compiles kernels with a C++17 compiler, and none was found (tried {}): install g++ or clang, or name one \
         in CXX",
        candidates.join(", ")
    ))
}

fn sanitizer_is_loaded() -> bool {
    // SAFETY: only asks whether the symbol exists.
    unsafe { Library::this().get::<unsafe extern "C" fn()>(b"__asan_init") }.is_ok()
}

impl CxxCompiler {
    pub(super) fn version(&self) -> &str {
        &self.version
    }

    pub(super) fn sanitizes(&self) -> bool {
        self.sanitizes
    }

    fn sanitizer_advice(&self) -> String {
        format!(
            "WARPFRAME_SIM_ASAN=1 needs AddressSanitizer in the process: run it with \
             LD_PRELOAD=$({} -print-file-name=libasan.so) ASAN_OPTIONS=detect_leaks=0",
            self.command.join(" ")
        )
    }

    fn is_clang(&self) -> bool {
        self.version.contains("clang")
    }

    /// Everything that makes two compilations of one source differ.
    pub(super) fn id(&self) -> String {
        let mut options = [self.kernel_options(), self.users_options()].concat();
        options.extend(self.libraries());
        format!("{} {} {}", self.version, std::env::consts::ARCH, options.join(" "))
    }

    /// The cache's file name of the runtime.
    pub(super) fn runtime_file(&self) -> String {
        format!("sim-runtime-{}.so", self.key(&self.runtime_options(), &runtime_text()))
    }

    /// What a text compiled with these options is known by.
    fn key(&self, options: &[&str], text: &str) -> String {
        let mut hash = Sha256::new();
        for part in [&self.version, std::env::consts::ARCH, &options.join(" "), text] {
            hash.update(part.as_bytes());
            hash.update([0]);
        }
        hex(&hash.finalize())[..32].to_string()
    }

    fn shared_options(&self) -> Vec<&'static str> {
        let mut options = COMMON.to_vec();
        if !self.is_clang() {
            // GCC would make function-local statics of templates, the sites of shared memory,
            // unique in the process.
            options.push("-fno-gnu-unique");
        }
        if cfg!(target_env = "gnu") {
            options.push("-DWF_SIM_TLS");
        }
        if cfg!(target_os = "macos") {
            options.push("-Wl,-undefined,dynamic_lookup");
        }
        options
    }

    fn kernel_options(&self) -> Vec<&'static str> {
        let mut options = self.shared_options();
        options.extend(KERNEL);
        // Clang is told what to leave out: what stands for libgcc there is not known.
        options.push(if self.is_clang() { "-nostdlib++" } else { "-nostdlib" });
        if self.sanitizes {
            // Kernels run on fibers' stacks, of which AddressSanitizer knows nothing.
            options.push("-fsanitize=address");
            options.extend(if self.is_clang() {
                ["-mllvm", "-asan-stack=0"]
            } else {
                ["--param", "asan-stack=0"]
            });
        }
        options
    }

    /// What comes on top for code that users wrote.
    fn users_options(&self) -> Vec<&'static str> {
        let mut options = OF_USERS.to_vec();
        if self.is_clang() {
            options.push("-fno-sanitize-link-runtime");
        }
        options
    }

    fn options_of(&self, source: &KernelSource) -> Vec<&'static str> {
        let mut options = self.kernel_options();
        if source.headers().iter().any(|(name, _)| USERS.contains(name)) {
            options.extend(self.users_options());
        }
        options
    }

    fn libraries(&self) -> &'static [&'static str] {
        if self.is_clang() { &[] } else { &LIBRARIES }
    }

    /// A kernel's text, and what it is linked with.
    fn inputs(&self) -> Vec<&'static str> {
        [&["-"], self.libraries()].concat()
    }

    fn runtime_options(&self) -> Vec<&'static str> {
        let mut options = self.shared_options();
        options.extend(RUNTIME_ONLY);
        options
    }

    /// Compiles a translation unit to a shared object.
    pub(super) fn compile_kernel(&self, source: &KernelSource, out: &Path) -> Result<()> {
        let options = self.options_of(source);
        let head = self.head_of(source);
        let behind_head = head.map(|head| {
            let include = head.include.to_string_lossy();
            let options = [&["-include", &*include], &options[..]].concat();
            let text = flatten_behind(head.headers.clone(), source);
            self.run(&source.name, &options, &text, &self.inputs(), out)
        });
        if let Some(Ok(())) = behind_head {
            return Ok(());
        }
        interrupt::check()?;
        let compiled = self.run(&source.name, &options, &flatten(source), &self.inputs(), out);
        if let (Ok(()), Some(head)) = (&compiled, head) {
            head.failed.store(true, Relaxed);
        }
        compiled
    }

    /// The head of a kernel, if it begins with it. Users' code is compiled with other options.
    fn head_of(&self, source: &KernelSource) -> Option<&KernelHead> {
        let is_users = || source.headers().iter().any(|(name, _)| USERS.contains(name));
        let head = source.text.starts_with(&head_text()).then(|| self.head()).flatten();
        head.filter(|head| !head.failed.load(Relaxed) && !is_users())
    }

    /// [`COMMON_HEADERS`], compiled if no process did before. `None` of Clang, which reads such
    /// files in another way, and where there is nowhere to keep one.
    fn head(&self) -> Option<&KernelHead> {
        let make = || {
            let mut options = self.kernel_options();
            options.retain(|option| *option != "-shared");
            let kind = options.iter_mut().find(|option| **option == "c++")?;
            *kind = "c++-header";
            let (mut text, mut headers) = (String::new(), vec![]);
            expand("the head of kernels", &head_text(), &mut headers, &mut text);
            let file = format!("sim-head-{}.h.gch", self.key(&options, &text));
            let store = Store::open(&Folders::of_environment());
            let known = store.written().ok().map(|folder| folder.join(&file));
            let compile = |out: &Path| {
                // GCC compiles no header from `-`.
                let inputs = ["/dev/stdin"];
                let compiled = self.run("the head of kernels", &options, &text, &inputs, out);
                compiled.map(|()| self.version.clone())
            };
            let path = match known.filter(|path| path.is_file()) {
                Some(path) => path,
                None => store.insert(&file, compile).ok()?.path,
            };
            Some(KernelHead {
                include: path.with_extension(""),
                headers,
                failed: AtomicBool::new(false),
            })
        };
        self.head.get_or_init(|| if self.is_clang() { None } else { make() }).as_ref()
    }

    /// Compiles a translation unit for what there is to say of it.
    pub(super) fn check(&self, source: &KernelSource) -> Result<()> {
        let mut options = self.options_of(source);
        options.retain(|option| !["-w", "-shared"].contains(option));
        // Whether each way through a function returns only the compiler behind the parser knows.
        options.extend(["-S", "-Werror=return-type"]);
        self.run(&source.name, &options, &flatten(source), &["-"], Path::new("/dev/null"))
    }

    pub(super) fn compile_runtime(&self, out: &Path) -> Result<()> {
        let options = self.runtime_options();
        self.run("the simulator's runtime", &options, &runtime_text(), &["-"], out)
    }

    /// Starts the compiler. The first of `inputs` is what it calls its standard input, which is the
    /// text.
    fn run(
        &self,
        name: &str,
        options: &[&str],
        text: &str,
        inputs: &[&str],
        out: &Path,
    ) -> Result<()> {
        let failed = |log: String| -> crate::Error {
            ErrorKind::Compile { kernel: name.into(), log }.into()
        };
        let mut command = Command::new(&self.command[0]);
        command.args(&self.command[1..]).args(options).arg("-o").arg(out).args(inputs);
        if self.sanitizes {
            // AddressSanitizer is for what this process runs. A compiler would be slower by it.
            command.env_remove("LD_PRELOAD");
        }
        match children::run(command, text.as_bytes()) {
            Ok(output) if output.status.success() => Ok(()),
            // Given up, with its statement.
            Ok(output) => {
                interrupt::check()?;
                Err(failed(String::from_utf8_lossy(&output.stderr).into_owned()))
            }
            Err(error) => Err(failed(format!("{}: {error}", self.command[0]))),
        }
    }
}

/// What a kernel that has a head begins with.
fn head_text() -> String {
    COMMON_HEADERS.map(|name| format!("#include \"{name}\"\n")).concat()
}

/// The runtime behind the declarations that it shares with kernels.
fn runtime_text() -> String {
    let mut text = String::from("#include \"sim.h\"\n");
    for (name, part) in RUNTIME {
        text.push_str(&format!("#line 1 \"{name}\"\n{part}"));
    }
    flatten(&KernelSource::new("runtime", text))
}

/// The source with every embedded header put in the place of its first `#include`: the compiler
/// needs no files.
fn flatten(source: &KernelSource) -> String {
    flatten_behind(Vec::new(), source)
}

/// A flattened source without these headers, which are there already.
fn flatten_behind(mut included: Vec<&'static str>, source: &KernelSource) -> String {
    let mut text = String::new();
    expand(&source.name, &source.text, &mut included, &mut text);
    text
}

fn expand(name: &str, from: &str, included: &mut Vec<&'static str>, to: &mut String) {
    // Names go into string literals of the compiler's.
    let shown: String = name.chars().filter(|c| !matches!(c, '"' | '\\' | '\n')).collect();
    to.push_str(&format!("#line 1 \"{shown}\"\n"));
    for (number, line) in from.lines().enumerate() {
        let header = line
            .trim_start()
            .strip_prefix("#include \"")
            .and_then(|rest| rest.split('"').next())
            .and_then(|name| HEADERS.iter().find(|(known, _)| *known == name));
        match header {
            Some(&(header, _)) if included.contains(&header) => to.push('\n'),
            Some(&(header, text)) => {
                included.push(header);
                expand(header, text, included, to);
                to.push_str(&format!("#line {} \"{shown}\"\n", number + 2));
            }
            None => {
                to.push_str(line);
                to.push('\n');
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machine_without_compiler_is_told_what_to_install() {
        let why = find(&["no-such-compiler".into(), "/nor/this one".into()], false).unwrap_err();
        assert!(
            why.contains("install g++ or clang") && why.contains("no-such-compiler, /nor/this one"),
            "{why}"
        );
    }

    #[test]
    fn a_program_that_is_no_compiler_is_passed_over() {
        assert!(find(&["false".into()], false).is_err());
    }

    fn generated() -> KernelSource {
        let kernel = "struct P { i64* out; i64 a; };\n\
            extern \"C\" { WF_KERNEL(probe, P) { p.out[0] = wrap_add<i64>(p.a, 1); } }";
        let text = format!("{}using namespace wf;\n{kernel}\n", head_text());
        KernelSource::new("probe", text)
    }

    #[test]
    fn common_headers_are_compiled_ahead() {
        let compiler = system().unwrap();
        let Some(head) = compiler.head() else { return assert!(compiler.is_clang()) };
        assert!(COMMON_HEADERS.iter().all(|name| head.headers.contains(name)));
        let out = tempfile::tempdir().unwrap();
        let source = generated();
        assert!(compiler.head_of(&source).is_some());
        compiler.compile_kernel(&source, &out.path().join("probe.so")).unwrap();
        assert!(!head.failed.load(Relaxed), "it was compiled behind the head");
    }

    #[test]
    fn a_head_that_is_gone_is_done_without() {
        let head = KernelHead {
            include: "nowhere/head.h".into(),
            headers: vec![],
            failed: AtomicBool::new(false),
        };
        let CxxCompiler { command, version, sanitizes, .. } = system().unwrap();
        let (command, version, sanitizes) = (command.clone(), version.clone(), *sanitizes);
        let compiler =
            CxxCompiler { command, version, sanitizes, head: OnceLock::from(Some(head)) };
        let out = tempfile::tempdir().unwrap();
        for _ in 0..2 {
            compiler.compile_kernel(&generated(), &out.path().join("probe.so")).unwrap();
            assert!(compiler.head_of(&generated()).is_none(), "it was tried once");
        }
    }

    #[test]
    fn headers_are_put_in_place_once_and_lines_keep_their_numbers() {
        let text = flatten(&KernelSource::new(
            "a \"b\"",
            "one\n#include \"prelude.cuh\"\n#include \"prelude.cuh\"\nfour\n",
        ));
        assert!(text.starts_with("#line 1 \"a b\"\none\n#line 1 \"prelude.cuh\"\n"));
        assert!(text.ends_with("#line 3 \"a b\"\n\nfour\n"));
        assert_eq!(text.matches("typedef signed char i8;").count(), 1);
        assert!(text.contains("struct wf_sim_thread"), "prelude.cuh includes sim.h");
    }

    #[test]
    fn the_runtime_is_compiled_with_the_head_of_the_kernels_header() {
        assert!(runtime_text().contains("struct wf_sim_thread {"));
    }
}
