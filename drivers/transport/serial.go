package transport

import (
	"context"
	"fmt"
)

// Serial opens a serial line in raw mode without flow control. A line that is
// open is locked (flock) for as long, also against other programs that ask.
// Linux only.
//
// An adapter that is pulled out ends Read and Write with an error that matches
// io.ErrUnexpectedEOF; the next Dial opens it again once it is back. What is to
// be written goes out in pieces of at most 1 KiB, one at a time.
type Serial struct {
	Path     string // "/dev/serial/by-id/...", "/dev/ttyUSB0"
	Baud     int    // bits per second; default 38400
	DataBits int    // 5 to 8; default 8
	Parity   string // "none" (default), "odd", "even", "mark" or "space"
	StopBits string // "1" (default), "1.5" or "2"
}

// String returns the path.
func (s Serial) String() string { return s.Path }

// Dial opens the line. It does not wait for anything but the kernel.
func (s Serial) Dial(ctx context.Context) (Conn, error) {
	if err := context.Cause(ctx); err != nil {
		return nil, fmt.Errorf("cannot open: %w", err)
	}
	if s.Baud == 0 {
		s.Baud = 38400
	}
	if s.DataBits == 0 {
		s.DataBits = 8
	}
	if s.Parity == "" {
		s.Parity = "none"
	}
	if s.StopBits == "" {
		s.StopBits = "1"
	}
	conn, err := s.open()
	if err != nil {
		return nil, fmt.Errorf("serial line %s: %w", s.Path, err)
	}
	return conn, nil
}

// SerialPort is a serial line of this machine.
type SerialPort struct {
	Path string `json:"path"` // "/dev/ttyUSB0"
	// ByID is a link to Path that stays the same wherever the adapter is
	// plugged in; "" if udev has made none.
	ByID string `json:"by_id,omitempty"`
	USB  bool   `json:"usb"`
	// Of the USB device: hexadecimal, in capitals, and as the maker wrote them.
	VID     string `json:"vid,omitempty"`
	PID     string `json:"pid,omitempty"`
	Serial  string `json:"serial,omitempty"`
	Product string `json:"product,omitempty"`
}
