package fabric

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"slices"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/ocslab/ocslab/internal/netns"
)

// Reexec lets an ordinary user have network namespaces: it runs this program again,
// with the same arguments and files, as root of a new user namespace
// (user_namespaces(7)), and returns its exit code when it has ended; 128 and the
// number of the signal when one killed it. The caller then exits with that:
//
//	func main() {
//		if code, done, err := fabric.Reexec("OCSLAB_USERNS"); done {
//			os.Exit(code)
//		}
//		...
//
// A program of several threads, as every one in Go is, cannot enter a user namespace
// itself, so this must come first in main. Where namespaces can be made already, and in
// the program that is run, done is false. An error says why there is no user namespace;
// the caller may go on without.
//
// The variable env of the environment marks the program that is run. Signals that
// ask a program to do something are passed on, but for those that a terminal sends to
// both. If this one is killed, so is the other.
func Reexec(env string) (exit int, done bool, err error) {
	if os.Getenv(env) != "" {
		return 0, false, nil
	}
	ns, err := netns.New("")
	if err == nil {
		return 0, false, ns.Close()
	}
	if !errors.Is(err, unix.EPERM) {
		return 0, false, fmt.Errorf("fabric: %w", err)
	}

	// The child is killed when the thread that started it ends.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	cmd := exec.Command("/proc/self/exe", os.Args[1:]...)
	cmd.Args[0] = os.Args[0]
	cmd.Env = append(os.Environ(), env+"=1")
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{
		// The mount namespace gives the right to mount sysfs of the hosts. The network
		// stays: other programs are to reach the sockets of this one.
		Cloneflags:                 syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS,
		UidMappings:                []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Geteuid(), Size: 1}},
		GidMappings:                []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getegid(), Size: 1}},
		GidMappingsEnableSetgroups: false,
		Pdeathsig:                  syscall.SIGKILL,
	}
	signals := make(chan os.Signal, 16)
	signal.Notify(signals, slices.DeleteFunc(slices.Clone(passed), signal.Ignored)...) // nohup stays in force
	defer signal.Stop(signals)
	if err := cmd.Start(); err != nil {
		return 0, false, fmt.Errorf("fabric: no user namespace: %w; a sysctl (user.max_user_namespaces, "+
			"kernel.unprivileged_userns_clone, kernel.apparmor_restrict_unprivileged_userns) may forbid them", err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	for {
		select {
		case s := <-signals:
			if !fromTerminal(s) {
				_ = cmd.Process.Signal(s) // it may have ended
			}
		case err := <-ended:
			return exitCode(cmd, err)
		}
	}
}

// passed are the signals that the child gets, too.
var passed = []os.Signal{
	syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT,
	syscall.SIGUSR1, syscall.SIGUSR2, syscall.SIGCONT, syscall.SIGWINCH,
}

// fromTerminal reports whether s is a signal that a terminal sends to all
// processes in its foreground, and we are in it; then so is the child.
func fromTerminal(s os.Signal) bool {
	if s != syscall.SIGINT && s != syscall.SIGQUIT && s != syscall.SIGWINCH {
		return false
	}
	tty, err := os.Open("/dev/tty")
	if err != nil {
		return false
	}
	defer tty.Close()
	group, err := unix.IoctlGetInt(int(tty.Fd()), unix.TIOCGPGRP)
	return err == nil && group == unix.Getpgrp()
}

func exitCode(cmd *exec.Cmd, err error) (int, bool, error) {
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		return 1, true, fmt.Errorf("fabric: %w", err)
	}
	if status, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return 128 + int(status.Signal()), true, nil
	}
	return cmd.ProcessState.ExitCode(), true, nil
}
