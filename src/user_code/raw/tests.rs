use super::*;

const SOURCE: &str = "extern \"C\" __global__ void __launch_bounds__(256)
saxpy(const double* __restrict__ x, double *y, // a comment, with a comma
      unsigned long long n, float a[], bool)
{ }";

fn parameters_of(source: &str, name: &str) -> Result<Vec<Parameter>> {
    signature(source, &tokens(source), name).map(|(parameters, _)| parameters)
}

fn text_of(source: &str, name: &str) -> std::result::Result<Rewritten, String> {
    let found = tokens(source);
    let (_, open) = signature(source, &found, name).unwrap();
    rewritten(source, &found, open)
}

#[test]
fn parameters_are_read_from_the_source() {
    let found = parameters_of(&SOURCE.replace("bool)", "bool flag)"), "saxpy").unwrap();
    let told: Vec<_> =
        found.iter().map(|p| (p.name.as_str(), p.written.as_str(), p.kind)).collect();
    use ParameterKind::*;
    let expected = [
        ("x", "double", PointerToConst),
        ("y", "double", Pointer),
        ("n", "unsigned long long", Value),
        ("a", "float", Pointer),
        ("flag", "bool", Value),
    ];
    assert_eq!(told, expected);
    assert_eq!(found[2].ctype, Some(CType { bytes: 8, class: CClass::Unsigned }));
    assert_eq!(parameters_of("extern \"C\" { __global__ void k(void) {} }", "k").unwrap(), []);
    for (source, why) in [
        ("__global__ void k(int n) {}", "extern \"C\""),
        ("extern \"C\" __global__ void other(int n) {}", "no `extern"),
        ("// extern \"C\" __global__ void k(int n) {}", "no `extern"),
        ("extern \"C\" __global__ void k(float** x) {}", "parameter 1 (float * * x)"),
        ("extern \"C\" __global__ void k(int n, int& m) {}", "parameter 2"),
    ] {
        let error = parameters_of(source, "k").unwrap_err().to_string();
        assert!(error.contains(why), "{error}");
    }
}

#[test]
fn pointers_and_shared_memory_are_rewritten_and_lines_stay() {
    let source = "__device__ float two(const float *a, int n) { return 2 * *a; }
extern \"C\" __global__ void k(const Pair* p, float* const __restrict__ y, int n) {
    __shared__ float s[32][33], t;
    extern __shared__ __align__(16) unsigned char all[];
    float *a = y + n, b = 3;
    float *c = y + f(n, n);
    y[0] = n * *c + sizeof(float) * n + (float)*a;
}";
    let rewritten = text_of(source, "k").unwrap();
    let text = &rewritten.text;
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), source.lines().count());
    assert!(lines[0].contains("two(::wf::checked<const float> a, int n)"), "{text}");
    assert!(
        lines[1].contains("k(::wf::checked<const Pair> p, const ::wf::checked<float> y, int n)"),
        "{text}"
    );
    assert!(
        lines[2].contains("wf_whole_s[32][33]; wf_whole_s& s")
            && lines[2].contains("wf_whole_t& t"),
        "{text}"
    );
    assert!(lines[3].contains("static ::wf::dynamic_shared<unsigned char> all;"), "{text}");
    assert_eq!(lines[4], "    float *a = y + n, b = 3;");
    assert!(lines[5].contains("::wf::checked<float> c = y"), "{text}");
    assert_eq!(lines[6], source.lines().nth(6).unwrap());
    let column = lines_column(&rewritten.text, 1, "int n");
    let expected = lines_column(source, 1, "int n");
    assert_eq!(rewritten.column_of_source(source, 2, column), expected);
    assert_eq!(rewritten.column_of_source(source, 7, 5), 5);
    let global = "__shared__ int s[4];\nextern \"C\" __global__ void k(int n) {}";
    assert!(
        text_of(global, "k").unwrap_err().contains("outside of functions: `__shared__ int s[4]`")
    );
}

fn lines_column(text: &str, line: usize, of: &str) -> u64 {
    text.lines().nth(line).and_then(|line| line.find(of)).unwrap() as u64 + 1
}
