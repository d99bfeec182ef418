package cmis

import "context"

// Memory is the memory of one module, however it is reached: over a controller's serial
// line, an I2C bus, a file. An implementation selects bank and page itself, and need not be
// safe for concurrent use; page, bank and offset pass [Address.Check] with the length.
type Memory interface {
	// Read fills buf from a on, in one transaction of the module. It may clear flags.
	Read(ctx context.Context, a Address, buf []byte) error
	// Write writes data from a on, in one transaction: what it does takes effect when the
	// last byte has come. What is read only stays as it is, without an error, as modules do.
	Write(ctx context.Context, a Address, data []byte) error
}

// ReadRequest is one read of a [BatchReader].
type ReadRequest struct {
	At   Address
	Data []byte // filled
}

// BatchReader is a [Memory] that does several reads in less time than one after the other,
// such as one behind a line on which requests need not wait for replies.
type BatchReader interface {
	Memory
	// ReadEach does reads in order, each in one transaction of the module, and stops at the
	// first that fails.
	ReadEach(ctx context.Context, reads []ReadRequest) error
}
