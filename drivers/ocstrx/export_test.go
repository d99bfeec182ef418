package ocstrx

import "io"

// File is what a module behind [OpenEEPROM] needs of its file.
type File = file

// EEPROMBus is the bus of OpenEEPROM on files that are not of the kernel; dir has the
// attributes of their driver.
func EEPROMBus(dir string, files ...File) Bus {
	var modules []module
	for _, f := range files {
		modules = append(modules, newEEPROM(f, dir))
	}
	return newMemoryBus("files", nil, modules)
}

// Transfer is an I2C adapter that is a function.
type Transfer func(addr uint16, w, r []byte) error

func (Transfer) claim(uint16) error                        { return nil }
func (t Transfer) transfer(addr uint16, w, r []byte) error { return t(addr, w, r) }
func (Transfer) Close() error                              { return nil }

// I2CBus is the bus of OpenI2C on that adapter.
func I2CBus(t Transfer, addrs ...uint16) Bus {
	var modules []module
	for _, addr := range addrs {
		modules = append(modules, &i2cModule{adapter: t, addr: addr})
	}
	return newMemoryBus("i2c", t, modules)
}

// Nack is what a module makes that does not answer.
func Nack(err error) error { return nack{err, false} }

var _ io.Closer = Transfer(nil)
