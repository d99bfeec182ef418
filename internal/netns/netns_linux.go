package netns

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"runtime"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// Current returns the namespace that the program runs in.
func Current() (*NS, error) { return Open("") }

// Open returns the namespace that ref refers to: "" is the one that the program
// runs in, "gpu1" the one that `ip netns` calls so, "pid:4711" that of a process,
// and what has a slash is a path, such as /proc/4711/fd/8. Entering it later
// needs CAP_SYS_ADMIN.
func Open(ref string) (*NS, error) {
	p, err := path(ref)
	if err != nil {
		return nil, err
	}
	// Not with os.Open: that makes a regular file of it if need be, and asks the
	// poller, to which a namespace means nothing.
	fd, err := unix.Open(p, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("there is no network namespace %q (%s): %w", ref, p, err)
		}
		return nil, fmt.Errorf("network namespace %q (%s): %w", ref, p, err)
	}
	kind, err := unix.IoctlRetInt(fd, unix.NS_GET_NSTYPE)
	if err != nil || kind != unix.CLONE_NEWNET {
		unix.Close(fd)
		return nil, fmt.Errorf("%s is not a network namespace", p)
	}
	return &NS{f: os.NewFile(uintptr(fd), p), name: ref}, nil
}

// New makes an empty namespace with its loopback interface down. The label is
// only for [NS.String]. It needs CAP_SYS_ADMIN.
func New(label string) (*NS, error) {
	var n *NS
	err := onThread(func() error {
		if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
			return fmt.Errorf("new network namespace: %w", err)
		}
		var err error
		n, err = Open("")
		return err
	})
	if err != nil {
		return nil, err
	}
	n.name = label
	return n, nil
}

// onThread runs fn on a thread that ends afterwards, so fn may change what
// belongs to the thread.
func onThread(fn func() error) error {
	done := make(chan error, 1)
	go func() {
		runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
		done <- fn()
	}()
	return <-done
}

// Do runs fn in the namespace, on a thread of its own that ends afterwards. What
// fn opens there (sockets, /dev/net/tun) stays in the namespace. Goroutines that
// fn starts are not in it; fn must not panic.
func (n *NS) Do(fn func() error) error {
	return onThread(func() error {
		if err := n.enter(); err != nil {
			return err
		}
		return fn()
	})
}

// Enter moves the calling thread into the namespace for good. The caller has
// locked its goroutine to the thread and never unlocks it.
func (n *NS) Enter() error { return n.enter() }

func (n *NS) enter() error {
	same, err := n.current()
	if same || err != nil {
		return err
	}
	if err := unix.Setns(int(n.f.Fd()), unix.CLONE_NEWNET); err != nil {
		return fmt.Errorf("enter network namespace %s: %w", n.name, err)
	}
	return nil
}

// current reports whether the calling thread is in the namespace already, so
// that an ordinary user needs no right to stay where he is.
func (n *NS) current() (bool, error) {
	var mine, its unix.Stat_t
	if err := unix.Stat("/proc/thread-self/ns/net", &mine); err != nil {
		return false, fmt.Errorf("network namespace: %w", err)
	}
	if err := unix.Fstat(int(n.f.Fd()), &its); err != nil {
		return false, fmt.Errorf("network namespace %s: %w", n.name, err)
	}
	return mine.Dev == its.Dev && mine.Ino == its.Ino, nil
}

// Sysfs returns the directory /sys as seen from within the namespace:
// class/net in it lists the namespace's interfaces. Use openat(2) on it, or
// [os.Root]. It is a mount that is attached nowhere and ends when the file is
// closed and all that was opened under it (fsmount(2), Linux 5.2), and needs
// CAP_SYS_ADMIN. Without that right, the namespace that the program runs in is seen
// through /sys itself, unless that was mounted in another one, as `nsenter --net`
// leaves it.
func (n *NS) Sysfs() (*os.File, error) {
	var dir *os.File
	err := onThread(func() error {
		same, err := n.current()
		if err == nil && !same {
			err = n.enter()
		}
		if err != nil {
			return err
		}
		fd, err := mountSysfs()
		switch {
		case err == nil:
			dir = os.NewFile(uintptr(fd), "sysfs of "+n.name)
			return nil
		case !same:
			return fmt.Errorf("sysfs of network namespace %s: %w", n.name, err)
		}
		if err := checkSys(); err != nil {
			return err
		}
		dir, err = os.Open("/sys")
		return err
	})
	return dir, err
}

// checkSys reports whether /sys shows the interfaces of the calling thread's
// namespace.
func checkSys() error {
	list, err := net.Interfaces()
	if err != nil {
		return err
	}
	for _, i := range list {
		text, err := os.ReadFile("/sys/class/net/" + i.Name + "/ifindex")
		if err != nil || strings.TrimSpace(string(text)) != strconv.Itoa(i.Index) {
			return fmt.Errorf("/sys was mounted in another network namespace and does not show %s: run as root, or enter with `ip netns exec`", i.Name)
		}
	}
	return nil
}

func mountSysfs() (int, error) {
	fsfd, err := unix.Fsopen("sysfs", unix.FSOPEN_CLOEXEC)
	if err != nil {
		return -1, os.NewSyscallError("fsopen", err)
	}
	defer unix.Close(fsfd)
	if err := unix.FsconfigCreate(fsfd); err != nil {
		return -1, os.NewSyscallError("fsconfig", err)
	}
	// In a user namespace the flags of the mount that is there must be kept, else
	// the kernel says EPERM; these are its usual ones.
	fd, err := unix.Fsmount(fsfd, unix.FSMOUNT_CLOEXEC, unix.MOUNT_ATTR_NOSUID|unix.MOUNT_ATTR_NODEV|unix.MOUNT_ATTR_NOEXEC)
	return fd, os.NewSyscallError("fsmount", err)
}
