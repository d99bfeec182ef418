package scpiswitch_test

import (
	"context"
	"errors"
	"io"
	"regexp"
	"testing"
	"time"

	"github.com/ocslab/ocslab/drivers/scpiswitch"
	"github.com/ocslab/ocslab/drivers/transport"
	"github.com/ocslab/ocslab/ocs"
)

// recording is a device that says the same whatever it is asked, in pieces of a
// certain size, and hangs up. There is one session with it.
type recording struct {
	left           []byte
	size           int
	dialed, opened bool
}

func (r *recording) Dial(context.Context) (transport.Conn, error) {
	if r.dialed {
		return nil, errors.New("there is but one recording")
	}
	r.dialed = true
	return r, nil
}

func (r *recording) String() string                   { return "recording" }
func (r *recording) SetReadDeadline(time.Time) error  { return nil }
func (r *recording) SetWriteDeadline(time.Time) error { return nil }
func (r *recording) Close() error                     { return nil }

func (r *recording) Write(p []byte) (int, error) { return len(p), nil }

func (r *recording) Read(p []byte) (int, error) {
	if !r.opened {
		r.opened = true
		return copy(p, fine), nil
	}
	n := copy(p[:min(len(p), r.size)], r.left)
	if r.left = r.left[n:]; n == 0 {
		return 0, io.EOF
	}
	return n, nil
}

// acknowledged is the least that a device says to a change it has made.
var acknowledged = regexp.MustCompile(`(?s)\+?1\s*[\r\n].*?[-+]?0+\s*,\s*"`)

// FuzzReplies: whatever a device says, every call returns, a change succeeds only
// when it has been acknowledged, and errors are those of a device.
func FuzzReplies(f *testing.F) {
	for _, s := range []string{
		"1\r\n" + fine, fine, "(@1,2),(@17,18)\r\n" + fine, "1\r\n-221, \"Settings conflict\"\r\n" + fine, "(D,E)\r\n" + fine,
		"1\r\n(D)\r\n" + fine, "(-1.5,NAN)\r\n" + fine, "Polatis,X-16x16,1,2\r\n" + fine + "16,16\r\n" + fine, "DARK\r\n" + fine + "1\r\n" + fine,
		"1\r\n1\r\n" + fine + fine, "\"", "0,\"", "1\r0,\"a\"\"b\"\r", "(@1:9999),(@", "-,\"x\"\n",
	} {
		for call := range byte(9) {
			f.Add(call, byte(3), []byte(s))
		}
	}
	f.Fuzz(func(t *testing.T, call, size byte, replies []byte) {
		d := &recording{left: replies, size: int(size) + 1}
		sw, err := scpiswitch.Open(t.Context(), scpiswitch.Config{Dialer: d, Device: "rail0", MaxReply: 4096})
		if err != nil {
			t.Fatal(err)
		}
		defer sw.Close()
		m := methods[int(call)%len(methods)]
		err = m.call(t.Context(), sw)
		var op *ocs.OpError
		if err != nil && !errors.As(err, &op) && !regexp.MustCompile(`^(wrong result|receipt)`).MatchString(err.Error()) {
			t.Errorf("%s: %T %v", m.name, err, err)
		}
		if err == nil && !m.read && !acknowledged.Match(replies) {
			t.Errorf("%s: %q was taken for an acknowledgement", m.name, replies)
		}
	})
}
