package runner

import (
	"os"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/ocslab/ocslab/internal/netns"
)

// driver returns what drives a network interface in a network namespace, and the version of
// its firmware, as ethtool -i tells them; "" where that is not known.
func driver(namespace, iface string) (name, firmware string) {
	ask := func() error {
		s, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			return err
		}
		defer unix.Close(s)
		info, err := unix.IoctlGetEthtoolDrvinfo(s, iface)
		if err == nil {
			name, firmware = unix.ByteSliceToString(info.Driver[:]), unix.ByteSliceToString(info.Fw_version[:])
		}
		return err
	}
	if namespace == "" {
		_ = ask() // what cannot be asked is not known
		return name, firmware
	}
	if ns, err := netns.Open(namespace); err == nil {
		defer ns.Close()
		_ = ns.Do(ask)
	}
	return name, firmware
}

// machine returns the version of the kernel and what tells this boot from others.
func machine() (kernel, boot string) {
	var u unix.Utsname
	if err := unix.Uname(&u); err == nil {
		kernel = unix.ByteSliceToString(u.Sysname[:]) + " " + unix.ByteSliceToString(u.Release[:])
	}
	if id, err := os.ReadFile("/proc/sys/kernel/random/boot_id"); err == nil {
		boot = strings.TrimSpace(string(id))
	}
	return kernel, boot
}
