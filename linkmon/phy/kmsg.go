package phy

import (
	"bytes"
	"errors"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/ocslab/ocslab/timeline"
)

// SourceKmsg is the source of marks made from the kernel log.
const SourceKmsg = "kmsg"

// KmsgEvent is a line of a driver on a link, or records that were lost.
type KmsgEvent struct {
	Interface string // "" when records were lost
	Up        bool

	// When the line was written, on the host's axis. Of lost records: when they were
	// noticed.
	timeline.Interval

	Text string // the line, or a sentence on what was lost

	// Lost counts records that the kernel threw away before they could be read, at least.
	// What links did meanwhile, another source has to tell.
	Lost uint64
}

// Mark returns the firmware mark of a link that came up. Of a link that went down there
// is none: the stages know the loss of light and of carrier only.
func (e KmsgEvent) Mark(host string) (timeline.Mark, bool) {
	if e.Interface == "" || !e.Up {
		return timeline.Mark{}, false
	}
	return timeline.Mark{
		Stage: timeline.Firmware, Subject: host + "/" + e.Interface, Host: host, Interval: e.Interval,
		Source: SourceKmsg, Detail: e.Text,
	}, true
}

// record is one record of /dev/kmsg (Documentation/ABI/testing/dev-kmsg).
type record struct {
	facility int // 0 is the kernel; what programs write is never 0
	seq      uint64
	stamp    time.Duration // of local_clock(); cut off to whole microseconds
	text     string
}

var errRecord = errors.New("not a record of the kernel log")

// parseRecord takes "6,1234,5678901,-,...;text\n KEY=value\n" apart. Newer kernels put
// more between the flags and the semicolon.
func parseRecord(b []byte) (record, error) {
	head, rest, ok := bytes.Cut(b, []byte(";"))
	fields := strings.Split(string(head), ",")
	if !ok || len(fields) < 4 {
		return record{}, errRecord
	}
	prio, err1 := strconv.ParseUint(fields[0], 10, 31)
	seq, err2 := strconv.ParseUint(fields[1], 10, 64)
	usec, err3 := strconv.ParseUint(fields[2], 10, 63)
	if err1 != nil || err2 != nil || err3 != nil || usec > math.MaxInt64/uint64(time.Microsecond) {
		return record{}, errRecord
	}
	text, _, _ := bytes.Cut(rest, []byte("\n"))
	return record{int(prio >> 3), seq, time.Duration(usec) * time.Microsecond, unescape(string(text))}, nil
}

// unescape undoes "\x1b" for bytes that are not printable, and for the backslash.
func unescape(s string) string {
	if !strings.Contains(s, `\x`) {
		return s
	}
	var b strings.Builder
	for {
		i := strings.Index(s, `\x`)
		if i < 0 {
			break
		}
		v, err := strconv.ParseUint(s[i+2:min(i+4, len(s))], 16, 8)
		if err != nil || i+4 > len(s) {
			b.WriteString(s[:i+2])
			s = s[i+2:]
			continue
		}
		b.WriteString(s[:i])
		b.WriteByte(byte(v))
		s = s[i+4:]
	}
	return b.String() + s
}

// linkLine says whether a line tells of the link of one of the interfaces. Drivers write
// through netdev_info, which puts driver, bus address and interface first, and then:
//
//	mlx5_core, mlx4_en            Link up                    Link down
//	bnxt_en, i40e, ice, ixgbe     NIC Link is Up, 100 Gbps   NIC Link is Down
//	cxgb4                         link up, 100Gbps           link down
//	igb, igc                      igb: eth0 NIC Link is Up   igb: eth0 NIC Link is Down
//
// The last name the interface once more. What others say of an interface reads
// otherwise: "link becomes ready" (IPv6), "link status definitely up" (bonding).
func linkLine(text string, interfaces []string) (iface string, up, ok bool) {
	for _, name := range interfaces {
		rest, found := after(text, name)
		if !found {
			continue
		}
		s := strings.ToLower(strings.TrimLeft(rest, ": "))
		s = strings.TrimPrefix(s, "nic ")
		s = strings.TrimPrefix(s, "link ")
		s = strings.TrimPrefix(s, "is ")
		if len(s) == len(strings.TrimLeft(rest, ": ")) {
			continue // none of these words
		}
		s, _, _ = strings.Cut(s, " ")
		switch strings.TrimRight(s, ",.:") {
		case "up":
			return name, true, true
		case "down":
			return name, false, true
		}
	}
	return "", false, false
}

// after returns what follows the last mention of a name as a word of its own.
func after(text, name string) (string, bool) {
	for end := len(text); ; {
		i := strings.LastIndex(text[:end], name)
		if i < 0 || name == "" {
			return "", false
		}
		rest := text[i+len(name):]
		if (i == 0 || text[i-1] == ' ') && (strings.HasPrefix(rest, " ") || strings.HasPrefix(rest, ": ")) {
			return rest, true
		}
		end = i + len(name) - 1
	}
}

// offset holds what has to be added to a stamp of the log to get a place on the axis: an
// interval in nanoseconds.
type offset timeline.Interval

// offsetOf is the offset by one line that was written within an interval.
func offsetOf(written timeline.Interval, stamp time.Duration) offset {
	return offset(written.Sub(stampInterval(stamp)))
}

func (o offset) place(stamp time.Duration) timeline.Interval {
	i := stampInterval(stamp)
	return timeline.Interval{Earliest: i.Earliest + o.Earliest, Latest: i.Latest + o.Latest}
}

func stampInterval(stamp time.Duration) timeline.Interval {
	return timeline.Between(int64(stamp), int64(stamp)+int64(time.Microsecond)-1)
}

// maxSlew bounds how fast the clock of the log, which nobody disciplines, moves away from
// the axis: 500 ppm is the most that the kernel's NTP code does to CLOCK_MONOTONIC.
func maxSlew(d time.Duration) time.Duration { return d / 2000 }
