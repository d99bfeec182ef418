package ocstrx

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/ocslab/ocslab/ocs"
)

// Of linux/i2c-dev.h and linux/i2c.h.
const (
	i2cSlave    = 0x0703
	i2cFuncs    = 0x0705
	i2cRDWR     = 0x0707
	i2cFuncI2C  = 1
	i2cFlagRead = 1
)

// i2cMessage is struct i2c_msg, i2cTransfer struct i2c_rdwr_ioctl_data.
type i2cMessage struct {
	addr, flags, length uint16
	buf                 *byte
}

type i2cTransfer struct {
	messages *i2cMessage
	n        uint32
}

// i2cDev is an adapter at /dev.
type i2cDev struct{ *os.File }

func openAdapter(path string) (adapter, error) {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("there is no such I2C adapter; is the kernel module i2c-dev loaded? %w", err)
	case errors.Is(err, fs.ErrPermission):
		return nil, fmt.Errorf("is not for this user, who should be in the group of the adapter, mostly i2c: %w", err)
	case err != nil:
		return nil, err
	}
	var funcs uintptr // unsigned long of the kernel
	if err := ioctl(f, i2cFuncs, unsafe.Pointer(&funcs)); err != nil {
		f.Close()
		return nil, fmt.Errorf("is not an I2C adapter: %w", err)
	}
	if funcs&i2cFuncI2C == 0 {
		f.Close()
		return nil, fmt.Errorf("this adapter speaks SMBus only, and modules want I2C: %w", ocs.ErrNotSupported)
	}
	return i2cDev{f}, nil
}

// claim sets the address for nothing but the check that comes with it.
func (d i2cDev) claim(addr uint16) error {
	err := unix.IoctlSetInt(int(d.Fd()), i2cSlave, int(addr))
	if errors.Is(err, unix.EBUSY) {
		return fmt.Errorf("I2C address %02Xh belongs to a driver of the kernel, such as optoe: use its file eeprom, or unbind it: %w", addr, err)
	}
	return err
}

func (d i2cDev) transfer(addr uint16, w, r []byte) error {
	var pin runtime.Pinner // the messages point at these
	defer pin.Unpin()
	pin.Pin(&w[0])
	messages := []i2cMessage{{addr: addr, length: uint16(len(w)), buf: &w[0]}}
	if len(r) > 0 {
		pin.Pin(&r[0])
		messages = append(messages, i2cMessage{addr: addr, flags: i2cFlagRead, length: uint16(len(r)), buf: &r[0]})
	}
	pin.Pin(&messages[0])
	return nacked(ioctl(d.File, i2cRDWR, unsafe.Pointer(&i2cTransfer{&messages[0], uint32(len(messages))})))
}

// nacked makes a nack of those errors with which adapters tell that a device did not answer,
// or that another master was faster (Documentation/i2c/fault-codes.rst of the kernel).
func nacked(err error) error {
	switch {
	case errors.Is(err, unix.ENXIO), errors.Is(err, unix.EREMOTEIO), errors.Is(err, unix.EAGAIN):
		return nack{err, false}
	case errors.Is(err, unix.ETIMEDOUT):
		return nack{err, true}
	}
	return err
}

func ioctl(f *os.File, request uintptr, arg unsafe.Pointer) error {
	if _, _, errno := unix.Syscall(unix.SYS_IOCTL, f.Fd(), request, uintptr(arg)); errno != 0 {
		return errno
	}
	return nil
}
