package linkmon

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/ocslab/ocslab/internal/netns"
)

// sysfs is the carrier counters of the kernel, from class/net
// (Documentation/ABI/testing/sysfs-class-net). Its files can be read from any
// namespace once they are open.
type sysfs struct{ dir *os.File } // /sys

func openSysfs(ns *netns.NS) (Counters, error) {
	if ns == nil {
		current, err := netns.Current()
		if err != nil {
			return nil, err
		}
		defer current.Close()
		ns = current
	}
	dir, err := ns.Sysfs()
	if err != nil {
		return nil, fmt.Errorf("the carrier counters cannot be reached: %w", err)
	}
	return &sysfs{dir}, nil
}

func (s *sysfs) close() { s.dir.Close() }

func (s *sysfs) Interfaces() ([]Interface, error) {
	fd, err := unix.Openat(int(s.dir.Fd()), "class/net", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: "/sys/class/net", Err: err}
	}
	dir := os.NewFile(uintptr(fd), "/sys/class/net")
	defer dir.Close()
	names, err := dir.Readdirnames(-1)
	if err != nil {
		return nil, err
	}
	list := make([]Interface, 0, len(names))
	for _, name := range names {
		// A name may be gone again, or be a file such as bonding_masters.
		if index, err := readIndex(fd, name); err == nil {
			list = append(list, Interface{index, name})
		}
	}
	return list, nil
}

func readIndex(dir int, name string) (int, error) {
	fd, err := unix.Openat(dir, name+"/ifindex", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return 0, err
	}
	defer unix.Close(fd)
	n, err := readNumber(fd)
	return int(int32(n)), err
}

func (s *sysfs) Open(i Interface) (Counter, error) {
	dir, err := unix.Openat(int(s.dir.Fd()), "class/net/"+i.Name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, sysfsError("open", i.Name, "", err)
	}
	defer unix.Close(dir)
	if index, err := readIndex(dir, "."); err != nil {
		return nil, sysfsError("read", i.Name, "ifindex", err)
	} else if index != i.Index {
		return nil, ErrGone // another one has its name now
	}
	c := &sysfsCounter{name: i.Name, changes: -1, ups: -1, downs: -1, carrier: -1, oper: -1}
	for _, f := range []struct {
		fd   *int
		name string
		need bool
	}{
		{&c.changes, "carrier_changes", true},
		{&c.ups, "carrier_up_count", false}, // Linux 4.16
		{&c.downs, "carrier_down_count", false},
		{&c.carrier, "carrier", false},
		{&c.oper, "operstate", false},
	} {
		*f.fd, err = unix.Openat(dir, f.name, unix.O_RDONLY|unix.O_CLOEXEC, 0)
		if err != nil && (f.need || !errors.Is(err, fs.ErrNotExist)) {
			c.Close()
			return nil, sysfsError("open", i.Name, f.name, err)
		}
	}
	return c, nil
}

// sysfsCounter holds open files of class/net/NAME; -1 is one that there is not.
type sysfsCounter struct {
	name                               string
	changes, ups, downs, carrier, oper int
}

func (c *sysfsCounter) Changes() (uint32, error) {
	n, err := readNumber(c.changes)
	if err != nil {
		return 0, sysfsError("read", c.name, "carrier_changes", err)
	}
	return n, nil
}

func (c *sysfsCounter) UpDown() (ups, downs uint32, err error) {
	if ups, err = readNumber(c.ups); err != nil {
		return 0, 0, sysfsError("read", c.name, "carrier_up_count", err)
	}
	if downs, err = readNumber(c.downs); err != nil {
		return 0, 0, sysfsError("read", c.name, "carrier_down_count", err)
	}
	return ups, downs, nil
}

// Carrier fails with EINVAL while the interface is administratively down. It waits for
// the RTNL lock, so it is not for the poller.
func (c *sysfsCounter) Carrier() (bool, error) {
	var buf [4]byte
	n, err := unix.Pread(c.carrier, buf[:], 0)
	if err != nil {
		return false, sysfsError("read", c.name, "carrier", err)
	}
	return n > 0 && buf[0] == '1', nil
}

func (c *sysfsCounter) operState() (string, error) {
	var buf [32]byte
	n, err := unix.Pread(c.oper, buf[:], 0)
	if err != nil {
		return "", sysfsError("read", c.name, "operstate", err)
	}
	if n > 0 && buf[n-1] == '\n' {
		n--
	}
	return string(buf[:n]), nil
}

func (c *sysfsCounter) Close() error {
	for _, fd := range []int{c.changes, c.ups, c.downs, c.carrier, c.oper} {
		if fd >= 0 {
			unix.Close(fd)
		}
	}
	return nil
}

// readNumber reads a decimal number from the beginning of an open sysfs file.
// Counters wrap at 2^32, but carrier_changes is printed with a sign.
func readNumber(fd int) (uint32, error) {
	var buf [16]byte
	n, err := pread(fd, &buf)
	if err != nil {
		return 0, err
	}
	return parseNumber(buf[:n])
}

func parseNumber(b []byte) (uint32, error) {
	digits := b
	negative := len(digits) > 0 && digits[0] == '-'
	if negative {
		digits = digits[1:]
	}
	var n uint64
	end := 0
	for end < len(digits) && '0' <= digits[end] && digits[end] <= '9' {
		n = n*10 + uint64(digits[end]-'0')
		end++
	}
	if end == 0 || n > 1<<32-1 || end < len(digits) && digits[end] != '\n' {
		return 0, fmt.Errorf("%s is not a counter", strconv.Quote(string(b)))
	}
	if negative {
		return -uint32(n), nil
	}
	return uint32(n), nil
}

// pread reads without telling the Go scheduler, which would take half the time that
// the kernel needs to answer.
func pread(fd int, buf *[16]byte) (int, error) {
	for {
		n, _, errno := unix.RawSyscall6(unix.SYS_PREAD64, uintptr(fd), uintptr(unsafe.Pointer(buf)), uintptr(len(buf)), 0, 0, 0)
		switch errno {
		case 0:
			return int(n), nil
		case unix.EINTR:
		default:
			return 0, errno
		}
	}
}

func sysfsError(op, name, file string, err error) error {
	if errors.Is(err, unix.ENODEV) || errors.Is(err, unix.ENOENT) {
		return ErrGone
	}
	return &fs.PathError{Op: op, Path: "/sys/class/net/" + name + "/" + file, Err: err}
}
