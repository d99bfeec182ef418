package shim_test

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"regexp"
	"testing"
	"time"

	"github.com/ocslab/ocslab/orchestrator/proto"
	"github.com/ocslab/ocslab/orchestrator/shim"
	"github.com/ocslab/ocslab/topology/opus"
)

var lab = opus.Job{Name: "lab", Stages: 2, Axes: []opus.Axis{{Name: "dp", Size: 2}}}

// A peer is the other end of a shim's connection: it expects and sends literal frames.
type peer struct {
	t    testing.TB
	conn net.Conn
	r    *bufio.Reader
}

var issue = regexp.MustCompile(`"issue_ns":-?\d+`)

// expect reads a frame. When it was issued is written as 0.
func (p *peer) expect(want string) {
	p.t.Helper()
	got, err := p.read()
	if err != nil || got != want {
		p.t.Fatalf("got  %s, %v\nwant %s", got, err, want)
	}
}

func (p *peer) read() (string, error) {
	var size [4]byte
	if _, err := io.ReadFull(p.r, size[:]); err != nil {
		return "", err
	}
	body := make([]byte, binary.BigEndian.Uint32(size[:]))
	_, err := io.ReadFull(p.r, body)
	return issue.ReplaceAllString(string(body), `"issue_ns":0`), err
}

func (p *peer) send(bodies ...string) {
	p.t.Helper()
	for _, body := range bodies {
		if _, err := p.conn.Write(frame(body)); err != nil {
			p.t.Fatalf("%s: %v", body, err)
		}
	}
}

func frame(body string) []byte {
	return append(binary.BigEndian.AppendUint32(nil, uint32(len(body))), body...)
}

// quiet checks that the shim has nothing to say for a while.
func (p *peer) quiet() {
	p.t.Helper()
	p.conn.SetReadDeadline(time.Now().Add(time.Second))
	defer p.conn.SetReadDeadline(time.Time{})
	if got, err := p.read(); err == nil || !isTimeout(err) {
		p.t.Fatalf("got %s, %v, want nothing", got, err)
	}
}

func isTimeout(err error) bool {
	var n net.Error
	return errors.As(err, &n) && n.Timeout()
}

const (
	hello   = `{"kind":"hello","version":1,"job":"lab","rail":"rail0","rank":1,"host":"gpu2","local_rank":0,"epoch":0}`
	welcome = `{"kind":"welcome","epoch":7,"mono_ns":1,"timeout_ns":5000000000}`
	joinPP  = `{"kind":"join-group","group":"pp/1","axis":"pp","members":[1,3],"index":0}`
	joinDP  = `{"kind":"join-group","group":"dp/0","axis":"dp","members":[0,1],"index":1}`
	okPP    = `{"kind":"group-ok","group":"pp/1","domain":"rail","rails":["rail0"]}`
	okDP    = `{"kind":"group-ok","group":"dp/0","domain":"rail","rails":["rail0"]}`
)

// A listener hands out the controller's ends of the connections that a shim makes.
type listener chan *peer

func (l listener) dial(t testing.TB) func(context.Context) (net.Conn, error) {
	return func(ctx context.Context) (net.Conn, error) {
		a, b := net.Pipe()
		select {
		case l <- &peer{t, b, bufio.NewReader(b)}:
			return a, nil
		case <-ctx.Done():
			a.Close()
			return nil, ctx.Err()
		}
	}
}

// connect dials rank 1 of the job lab, and returns when it is connected.
func connect(t testing.TB, change func(*shim.Options)) (*shim.Shim, *peer, listener) {
	t.Helper()
	l := make(listener)
	opt := shim.Options{Dial: l.dial(t), Job: lab, Rail: "rail0", Rank: 1, Host: "gpu2", ProfileSteps: 3}
	if change != nil {
		change(&opt)
	}
	type dialled struct {
		s   *shim.Shim
		err error
	}
	done := make(chan dialled, 1)
	go func() {
		s, err := shim.Dial(t.Context(), opt)
		done <- dialled{s, err}
	}()
	p := <-l
	p.expect(hello)
	p.send(welcome)
	p.expect(joinPP)
	p.expect(joinDP)
	p.send(okDP, okPP)
	d := <-done
	if d.err != nil {
		t.Fatal(d.err)
	}
	return d.s, p, l
}

// finish closes a shim, and reads its goodbye.
func finish(t testing.TB, s *shim.Shim, p *peer) {
	t.Helper()
	done := make(chan error, 1)
	go func() { done <- s.Close() }()
	p.expect(`{"kind":"bye","reason":"rank 1 of rail0 has finished"}`)
	if err := <-done; err != nil {
		t.Error(err)
	}
	p.conn.Close()
}

// asked is a PreOp that is under way.
type asked chan struct {
	grant shim.Grant
	err   error
}

func preOp(ctx context.Context, s *shim.Shim, op shim.Op) asked {
	a := make(asked, 1)
	go func() {
		g, err := s.PreOp(ctx, op)
		a <- struct {
			grant shim.Grant
			err   error
		}{g, err}
	}()
	return a
}

func (a asked) granted(t testing.TB) shim.Grant {
	t.Helper()
	r := <-a
	if r.err != nil {
		t.Fatal(r.err)
	}
	return r.grant
}

func (a asked) refused(t testing.TB, want error) error {
	t.Helper()
	r := <-a
	if !errors.Is(r.err, want) {
		t.Fatalf("got %+v, %v; want %v", r.grant, r.err, want)
	}
	var n *shim.NotGranted
	if !errors.As(r.err, &n) {
		t.Fatalf("%v is no *NotGranted", r.err)
	}
	return r.err
}

func (a asked) pending(t testing.TB) {
	t.Helper()
	select {
	case r := <-a:
		t.Fatalf("got %+v, %v before there was an answer", r.grant, r.err)
	default:
	}
}

func dp(n uint64) shim.Op {
	return shim.Op{OpRef: proto.OpRef{Group: "dp/0", Op: n}, Axis: 1, Bytes: 1 << 20}
}
func pp(n uint64) shim.Op { return shim.Op{OpRef: proto.OpRef{Group: "pp/1", Op: n}, Bytes: 1 << 20} }
