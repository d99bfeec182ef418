package transport

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestSerialPorts reads the sysfs of a machine with one of each kind.
func TestSerialPorts(t *testing.T) {
	root := t.TempDir()
	write := func(path, text string) {
		t.Helper()
		path = filepath.Join(root, path)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	link := func(path, target string) {
		t.Helper()
		path = filepath.Join(root, path)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(target, path); err != nil {
			t.Fatal(err)
		}
	}
	const usb = "sys/devices/pci0000:00/usb1/1-1"
	for name, text := range map[string]string{"idVendor": "0403", "idProduct": "6001", "serial": "FTA1B2C3", "product": "FT232R USB UART"} {
		write(usb+"/"+name, text)
	}
	write(usb+"/1-1:1.0/ttyUSB0/port_number", "0")
	link("sys/class/tty/ttyUSB0/device", "../../../../"+usb+"/1-1:1.0/ttyUSB0")
	link("dev/serial/by-id/usb-FTDI_FT232R_USB_UART_FTA1B2C3-if00-port0", "../../ttyUSB0")
	write(usb+".2/idVendor", "2341")
	write(usb+".2/idProduct", "00ab")
	write(usb+".2/1-1.2:1.0/bInterfaceClass", "02")
	link("sys/class/tty/ttyACM0/device", "../../../../"+usb+".2/1-1.2:1.0")
	write("sys/devices/pnp0/00:01/id", "PNP0501")
	link("sys/class/tty/ttyS0/device", "../../../../sys/devices/pnp0/00:01")
	write("sys/class/tty/ttyS0/type", "4")
	link("sys/class/tty/ttyS1/device", "../../../../sys/devices/pnp0/00:01")
	write("sys/class/tty/ttyS1/type", "0") // not there
	write("sys/class/tty/tty0/dev", "4:0") // a console
	link("sys/class/tty/ttyGONE/device", "../../../../sys/devices/gone")

	got, err := serialPorts(root)
	want := []SerialPort{
		{Path: "/dev/ttyACM0", USB: true, VID: "2341", PID: "00AB"},
		{Path: "/dev/ttyS0"},
		{Path: "/dev/ttyUSB0", ByID: "/dev/serial/by-id/usb-FTDI_FT232R_USB_UART_FTA1B2C3-if00-port0", USB: true,
			VID: "0403", PID: "6001", Serial: "FTA1B2C3", Product: "FT232R USB UART"},
	}
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("got %v, difference\n%s", err, diff)
	}
	if _, err := serialPorts(filepath.Join(root, "none")); err == nil {
		t.Error("no sysfs: no error")
	}
}
