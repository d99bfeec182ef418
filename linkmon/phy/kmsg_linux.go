package phy

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ocslab/ocslab/timeline"
)

const kmsgPath = "/dev/kmsg"

const (
	// lookEvery bounds how long ago it was seen that a record was not there yet.
	lookEvery = 10 * time.Millisecond
	// calibrateEvery bounds how many lines calibration adds to the log.
	calibrateEvery = 250 * time.Millisecond
)

// Kmsg follows the kernel log for what drivers say of links. Next is for one goroutine;
// Close may be called from any.
//
// A line is stamped with the kernel's local_clock, which is not CLOCK_MONOTONIC. Where the
// log may be written, Kmsg writes a line of its own ("ocslab: clock ...", at debug level) when
// it begins and after lines of links, at most four times a second, and takes the offset
// from its stamp. Else the interval of an event reaches from when the log was last
// found without the line, at most about 10 ms before, to when it was read.
//
// The log is one for all network namespaces, and drivers write no more than the
// interface's name. So names should be unique among namespaces.
type Kmsg struct {
	f          *os.File
	raw        syscall.RawConn
	interfaces []string
	anybody    bool // tests: lines of programs count, too
	buf        []byte
	seq        uint64    // of the next record; 0: unknown
	overrun    bool      // before seq was known
	empty      time.Time // when the log last held nothing new
	queue      []KmsgEvent
	closed     atomic.Bool

	mu         sync.Mutex // guards what follows
	offset     offset
	calibrated time.Time // when offset was taken
	failed     error     // why it could not be
}

// OpenKmsg begins to follow the kernel log for the interfaces of these names; what was
// logged before does not count. Where kernel.dmesg_restrict is set it needs CAP_SYSLOG.
func OpenKmsg(interfaces ...string) (*Kmsg, error) {
	f, err := openLog(os.O_RDONLY)
	if err != nil {
		return nil, err
	}
	k := &Kmsg{f: f, interfaces: interfaces, buf: make([]byte, 8192)} // CONSOLE_EXT_LOG_MAX
	k.empty = time.Now()
	if k.raw, err = f.SyscallConn(); err == nil {
		_, err = f.Seek(0, 2)
	}
	if err == nil {
		err = f.SetReadDeadline(time.Time{}) // shows whether the poller takes the file
	}
	if err != nil {
		f.Close()
		return nil, fmt.Errorf("follow the kernel log: %w", err)
	}
	// Twice, since the first line is written several times as slowly as the second.
	if k.calibrate() == nil {
		k.calibrate()
	}
	return k, nil
}

func openLog(mode int) (*os.File, error) {
	f, err := os.OpenFile(kmsgPath, mode|unix.O_NONBLOCK, 0)
	if errors.Is(err, os.ErrPermission) {
		return nil, fmt.Errorf("the kernel log may not be opened; run as root or set kernel.dmesg_restrict=0: %w", err)
	}
	return f, err
}

// tryLog returns why the log cannot be read, if so.
func tryLog() error {
	f, err := openLog(os.O_RDONLY)
	if err != nil {
		return err
	}
	return f.Close()
}

// Calibration returns how far an instant may be from the stamp of the log, and an error
// that says why if that is not known; then intervals are as wide as reading is coarse.
func (k *Kmsg) Calibration() (bound time.Duration, err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return timeline.Interval(k.offset).Width()/2 + 1, k.failed
}

// Next waits for the next event. After Close it returns [os.ErrClosed]; when ctx ends, its
// error within about 10 ms.
func (k *Kmsg) Next(ctx context.Context) (KmsgEvent, error) {
	for len(k.queue) == 0 {
		if err := ctx.Err(); err != nil {
			return KmsgEvent{}, err
		}
		r, at, err := k.read()
		switch {
		case err == nil:
			k.take(r, at)
		case k.closed.Load():
			return KmsgEvent{}, os.ErrClosed
		case !errors.Is(err, os.ErrDeadlineExceeded):
			return KmsgEvent{}, fmt.Errorf("read the kernel log: %w", err)
		}
	}
	e := k.queue[0]
	k.queue = k.queue[1:]
	return e, nil
}

// read returns a record, and when it came into the log by what reading alone can tell.
func (k *Kmsg) read() (record, timeline.Interval, error) {
	if err := k.f.SetReadDeadline(time.Now().Add(lookEvery)); err != nil {
		return record{}, timeline.Interval{}, err
	}
	var n int
	var failed error
	from := k.empty
	err := k.raw.Read(func(fd uintptr) bool {
		for {
			now := time.Now()
			n, failed = unix.Read(int(fd), k.buf)
			switch failed {
			case unix.EPIPE: // records are lost; how many, tells the number of the next
				k.overrun = k.seq == 0
				continue
			case unix.EINTR:
				continue
			case unix.EAGAIN:
				k.empty = now
				return false
			}
			from = k.empty
			return true
		}
	})
	at := timeline.HostAxis().Span(from, time.Now())
	if err != nil {
		return record{}, at, err
	}
	if failed != nil {
		return record{}, at, failed
	}
	r, err := parseRecord(k.buf[:n])
	return r, at, err
}

func (k *Kmsg) take(r record, read timeline.Interval) {
	lost := uint64(0)
	switch {
	case k.seq != 0 && r.seq > k.seq:
		lost = r.seq - k.seq
	case k.overrun:
		lost, k.overrun = 1, false
	}
	if lost > 0 {
		k.queue = append(k.queue, KmsgEvent{
			Interval: read, Lost: lost,
			Text: fmt.Sprintf("at least %d records of the kernel log were overwritten before they were read", lost),
		})
	}
	k.seq = r.seq + 1
	if r.facility != 0 && !k.anybody {
		return // a program, such as networkd, says so
	}
	iface, up, ok := linkLine(r.text, k.interfaces)
	if !ok {
		return
	}
	k.queue = append(k.queue, KmsgEvent{Interface: iface, Up: up, Interval: k.place(r.stamp, read), Text: r.text})
}

// place returns when a record was stamped.
func (k *Kmsg) place(stamp time.Duration, read timeline.Interval) timeline.Interval {
	o, age, known := k.clock()
	if known && age > calibrateEvery {
		k.calibrate()
		o, age, known = k.clock()
	}
	if !known {
		return read
	}
	// The clocks may have moved apart between the stamp and the calibration.
	apart := max(age, time.Duration(timeline.HostAxis().NS(time.Now())-read.Earliest))
	at := offset(timeline.Interval(o).Widen(maxSlew(apart))).place(stamp)
	if _, ok := at.Intersect(read); !ok {
		return read // the host slept, and the clocks with it differently
	}
	return at
}

// clock returns the offset, how old it is, and whether there is one.
func (k *Kmsg) clock() (offset, time.Duration, bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.offset, time.Since(k.calibrated), k.failed == nil
}

// calibrate writes a line into the log and looks for its stamp. It uses a file of its own,
// whose place in the log is just before the line.
func (k *Kmsg) calibrate() error {
	o, err := measureOffset()
	k.mu.Lock()
	defer k.mu.Unlock()
	k.offset, k.calibrated, k.failed = o, time.Now(), err
	return err
}

func measureOffset() (offset, error) {
	f, err := openLog(os.O_RDWR)
	if err != nil {
		return offset{}, err
	}
	defer f.Close()
	if _, err := f.Seek(0, 2); err != nil {
		return offset{}, fmt.Errorf("calibrate the kernel log: %w", err)
	}
	raw, err := f.SyscallConn()
	if err != nil {
		return offset{}, fmt.Errorf("calibrate the kernel log: %w", err)
	}
	from := time.Now()
	line := fmt.Sprintf("ocslab: clock %d.%d", os.Getpid(), from.UnixNano())
	_, err = f.WriteString("<15>" + line + "\n") // facility user, level debug: no console shows it
	written := timeline.HostAxis().Span(from, time.Now())
	if err != nil {
		return offset{}, fmt.Errorf("the kernel log may not be written, so its clock cannot be calibrated: %w", err)
	}
	var found *record
	buf := make([]byte, 8192)
	rerr := raw.Read(func(fd uintptr) bool {
		for found == nil {
			n, err := unix.Read(int(fd), buf)
			switch {
			case errors.Is(err, unix.EINTR), errors.Is(err, unix.EPIPE):
				continue
			case err != nil: // EAGAIN: the log ends here
				return true
			}
			if r, err := parseRecord(buf[:n]); err == nil && strings.HasSuffix(r.text, line) {
				found = &r
			}
		}
		return true
	})
	if rerr != nil || found == nil {
		return offset{}, errors.New("the kernel drops what is written into its log, so its clock cannot be calibrated; see the kernel parameter printk.devkmsg")
	}
	return offsetOf(written, found.stamp), nil
}

// Close ends following, and a Next that waits.
func (k *Kmsg) Close() error {
	k.closed.Store(true)
	return k.f.Close()
}
