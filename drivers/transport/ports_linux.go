package transport

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// SerialPorts lists the serial lines of this machine, sorted by path, by what
// sysfs says of them. It opens none: that alone resets some devices, and the
// settings of a line that is in use. Linux only.
func SerialPorts() ([]SerialPort, error) { return serialPorts("/") }

// serialPorts lists those of the machine whose root directory is root.
func serialPorts(root string) ([]SerialPort, error) {
	class := filepath.Join(root, "sys/class/tty")
	ttys, err := os.ReadDir(class)
	if err != nil {
		return nil, fmt.Errorf("serial lines: %w", err)
	}
	byID := linksByTarget(filepath.Join(root, "dev/serial/by-id"))
	var ports []SerialPort
	for _, tty := range ttys {
		name := tty.Name()
		// A terminal without a device is no line; of the eight to 32 lines of
		// the first serial driver most are not there, and have no type.
		device, err := filepath.EvalSymlinks(filepath.Join(class, name, "device"))
		if err != nil || attribute(filepath.Join(class, name), "type") == "0" {
			continue
		}
		p := SerialPort{Path: "/dev/" + name, ByID: byID[name]}
		if usb := usbDevice(root, device); usb != "" {
			p.USB = true
			p.VID = strings.ToUpper(attribute(usb, "idVendor"))
			p.PID = strings.ToUpper(attribute(usb, "idProduct"))
			p.Serial, p.Product = attribute(usb, "serial"), attribute(usb, "product")
		}
		ports = append(ports, p)
	}
	slices.SortFunc(ports, func(a, b SerialPort) int { return cmp.Compare(a.Path, b.Path) })
	return ports, nil
}

// usbDevice returns the directory of the USB device that a device is a part of,
// "" if it is of none.
func usbDevice(root, device string) string {
	for dir := device; len(dir) > len(root) && dir != "."; dir = filepath.Dir(dir) {
		if attribute(dir, "idVendor") != "" {
			return dir
		}
	}
	return ""
}

func attribute(dir, name string) string {
	data, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(data))
}

// linksByTarget maps the last elements of what the links in dir point to, to the
// paths of the links.
func linksByTarget(dir string) map[string]string {
	entries, _ := os.ReadDir(dir) // is not there without udev
	links := map[string]string{}
	for _, e := range entries {
		path := filepath.Join(dir, e.Name())
		if target, err := os.Readlink(path); err == nil {
			links[filepath.Base(target)] = "/dev/serial/by-id/" + e.Name()
		}
	}
	return links
}
