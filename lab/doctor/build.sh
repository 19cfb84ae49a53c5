# shellcheck shell=sh
# Checks of lab/doctor.sh: what the lessons are built with.

# A machine to which the lessons were copied built needs no compiler, except for the lab.
ways_that_build() {
    if any "$TARGET"/debug/lesson-[0-9]*; then echo lab; else echo 'lab vms nic'; fi
}

check_cargo() {
    wanted=$(sed -n 's/^rust-version = "1\.\([0-9]*\).*/\1/p' "$ROOT$REPO/Cargo.toml")
    version=$(first_line cargo --version)
    minor=${version#cargo 1.} minor=${minor%%.*}
    case $minor in
    '') fail "$(ways_that_build)" cargo 'cargo is not installed' 'make setup' ;;
    *[!0-9]*) fail "$(ways_that_build)" cargo "cargo does not say its version, but: $version" 'make setup' ;;
    *) if [ "$minor" -ge "$wanted" ]; then
        ok cargo "$version"
    else
        fail "$(ways_that_build)" cargo "$version is too old; 1.$wanted or newer is needed" 'make setup'
    fi ;;
    esac
}

check_compiler() {
    missing=$(missing_of cc pkg-config)
    [ -z "$missing" ] || { fail "$(ways_that_build)" 'C compiler' "missing: $missing" 'make setup'; return; }
    ok 'C compiler' "$(first_line cc --version)"
}

# Set-up writes where it found one that rdma-sys builds with. Newer ones than 15 do not do.
check_libclang() {
    file=$(sed -n 's/^LIBCLANG_PATH.*value = "\([^"]*\)".*/\1/p' "$ROOT$REPO/.cargo/config.toml" 2>/dev/null)
    if [ -z "$file" ]; then
        fail "$(ways_that_build)" libclang 'no libclang 14 or 15 was chosen yet (newer ones do not build rdma-sys)' 'make setup'
    elif [ ! -e "$ROOT$file" ]; then
        fail "$(ways_that_build)" libclang "$file is gone" 'make setup'
    else
        ok libclang "$file"
    fi
}

check_headers() {
    for header in infiniband/verbs.h rdma/rdma_cma.h; do
        if [ ! -e "$ROOT/usr/include/$header" ]; then
            fail "$(ways_that_build)" 'rdma-core headers' "/usr/include/$header is missing" \
                "$(install 'libibverbs-dev librdmacm-dev' rdma-core-devel rdma-core)"
            return
        fi
    done
    ok 'rdma-core headers' 'verbs.h and rdma_cma.h'
}

# library WAYS NAME FILE CURE: whether FILE, a pattern, is in one of the folders for libraries.
library() {
    # shellcheck disable=SC2231 # a pattern that is meant to be expanded
    for file in "$ROOT"/usr/lib/$3 "$ROOT"/usr/lib64/$3 "$ROOT"/usr/lib/*-linux-gnu/$3; do
        if [ -e "$file" ]; then
            ok "$2" "${file#"$ROOT"}"
            return
        fi
    done
    fail "$1" "$2" "$3 is missing" "$4"
}

# The provider is the part of libibverbs that speaks to SoftRoCE's driver.
check_libraries() {
    library 'lab vms nic' 'rdma-core library' librdmacm.so.1 "$(install librdmacm1 librdmacm rdma-core)"
    library 'lab vms' 'SoftRoCE provider' 'libibverbs/librxe-rdmav*.so' "$(install ibverbs-providers libibverbs rdma-core)"
}
