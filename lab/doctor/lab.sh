# shellcheck shell=sh
# Checks of lab/doctor.sh: what the two emulated machines need.

check_qemu() {
    qemu=qemu-system-$MACHINE
    case $MACHINE in
    x86_64) debian=qemu-system-x86 others=qemu-system-x86 ;;
    aarch64) debian=qemu-system-arm others=qemu-system-aarch64 ;;
    *)
        fail lab QEMU "the lab knows x86_64 and aarch64 machines, not $MACHINE" 'run the lessons on two real machines: docs/two_machines.md'
        return
        ;;
    esac
    if has "$qemu"; then
        ok QEMU "$(first_line "$qemu" --version)"
    else
        fail lab QEMU "$qemu is not installed" "$(install $debian $others-core $others)"
    fi
}

check_lab_tools() {
    missing=$(missing_of busybox ip tc rdma depmod xz zstd)
    if [ -n "$missing" ]; then
        fail lab 'lab tools' "missing: $missing" 'make setup'
    elif head -c 1024 "$(command -v busybox)" | grep -q /ld-; then
        fail lab 'lab tools' 'busybox is not a static program' 'make setup'
    else
        ok 'lab tools' 'busybox ip tc rdma depmod xz zstd'
    fi
}

# The lab boots this machine's kernel if it may read it, the one it downloaded before, or downloads one.
check_lab_kernel() {
    if kernel_has rdma_rxe && [ -r "$ROOT/boot/vmlinuz-$RELEASE" ]; then
        ok 'kernel to boot' "this machine's own, $RELEASE"
    elif any "$TARGET"/lab/kernel/*/vmlinuz; then
        ok 'kernel to boot' 'downloaded before'
    elif ! has apt-get; then
        fail lab 'kernel to boot' "this machine's own ($RELEASE) is not readable or has no rdma_rxe, and there is no apt-get to download one" \
            "$(install_rxe); sudo chmod a+r /boot/vmlinuz-$RELEASE"
    elif any "$ROOT"/var/lib/apt/lists/*Packages*; then
        ok 'kernel to boot' 'apt-get will download one (70 MB; it is not installed)'
    else
        fail lab 'kernel to boot' "apt has no package lists to find a kernel in" 'sudo apt-get update'
    fi
}

# /dev/kvm may be there and work for nobody, so the lab tries it and writes the answer down until the next boot.
check_kvm() {
    known=$(content "$TARGET/lab/kvm")
    boot=$(content "$ROOT/proc/sys/kernel/random/boot_id")
    if [ ! -e "$ROOT/dev/kvm" ]; then
        no_kvm
    elif [ ! -r "$ROOT/dev/kvm" ] || [ ! -w "$ROOT/dev/kvm" ]; then
        note KVM 'you may not use /dev/kvm; the lab emulates (slower, still right)' \
            "sudo usermod -aG kvm $(id -un), then log in again"
    else
        case $known in
        "true "*"$boot") ok KVM 'a machine really runs on it' ;;
        "false "*"$boot") note KVM '/dev/kvm is there, but no machine runs on it; the lab emulates (slower, still right)' ;;
        *) note KVM '/dev/kvm is there; not tried yet' 'make lesson-01 tries it' ;;
        esac
    fi
}

no_kvm() {
    flag=$(grep -m 1 -o -w -e vmx -e svm "$ROOT/proc/cpuinfo")
    case $flag in
    vmx) note KVM 'no /dev/kvm; the lab emulates (slower, still right)' 'sudo modprobe kvm_intel' ;;
    svm) note KVM 'no /dev/kvm; the lab emulates (slower, still right)' 'sudo modprobe kvm_amd' ;;
    *) note KVM 'this machine offers no virtualization; the lab emulates (slower, still right)' ;;
    esac
}
