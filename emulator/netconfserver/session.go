package netconfserver

import (
	"context"
	"encoding/xml"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/ocslab/ocslab/emulator"
	"github.com/ocslab/ocslab/timeline"
	"github.com/ocslab/ocslab/wire/netconf"
)

// session is one client. Its requests are read and answered by one goroutine;
// another sends notifications once it has subscribed.
type session struct {
	srv    *Server
	dev    *emulator.Device
	model  *schema
	conn   io.ReadWriteCloser
	end    context.CancelFunc // closes conn
	me     *emulator.Session
	id     int
	group  emulator.Group
	ctx    context.Context
	events *emulator.Subscription // nil before create-subscription

	// wire is held while a request is carried out or a message is written, so
	// that messages stay whole; it guards what follows.
	wire    lock
	framing netconf.Framing
	buf     []byte // of messages
	frames  []byte // of messages in their framing

	reporters sync.WaitGroup
}

// lock is a mutex that may be held while the client does not read: unlike those
// who wait for a sync.Mutex, those who wait for it are idle to testing/synctest.
type lock chan struct{}

func (l lock) Lock()   { l <- struct{}{} }
func (l lock) Unlock() { <-l }

func newSession(s *Server, conn io.ReadWriteCloser, end context.CancelFunc, group emulator.Group) *session {
	return &session{
		srv: s, dev: s.Device, model: schemaOf(s.Device.Personality().NETCONF), conn: conn, end: end,
		group: group, wire: make(lock, 1),
	}
}

// run serves until the client is gone or ctx ends. It calls known once the
// client has said its hello.
func (ss *session) run(ctx context.Context, known func() bool) {
	ss.ctx = ctx
	defer ss.srv.unlock(ss.id)
	defer ss.reporters.Wait()
	defer ss.unsubscribe()
	defer ss.conn.Close() // lest a notification is stuck in it
	ours := ss.hello()
	// A client may send its hello before it reads ours, even on a pipe.
	greeted := make(chan bool, 1)
	go func() { greeted <- ss.send(ours.Node(), netconf.EndOfMessage) }()
	defer func() { ss.conn.Close(); <-greeted }()
	var in netconf.Decoder
	buf := make([]byte, 16<<10)
	met := false
	for {
		n, err := ss.conn.Read(buf)
		read := time.Now()
		in.Feed(buf[:n])
		for {
			msg, ok, bad := in.Next()
			if !ok && bad == nil {
				break
			}
			if !met { // whatever comes, the client has been greeted before it is answered
				said := <-greeted
				if greeted <- said; !said {
					return
				}
			}
			if bad != nil || ctx.Err() != nil {
				return // where the next message begins is anybody's guess
			}
			if met {
				if !ss.handle(msg, read) {
					return
				}
				continue
			}
			theirs, ok := meet(msg, ours)
			if !ok {
				return
			}
			met = true
			known()
			ss.framing = netconf.Negotiate(ours, theirs)
			in.SetFraming(ss.framing)
		}
		if err != nil {
			return
		}
	}
}

// Capabilities that package netconf has no name for.
const (
	acm        = "urn:ietf:params:xml:ns:yang:ietf-netconf-acm"
	acmModule  = acm + "?module=ietf-netconf-acm&revision=2018-02-14"
	monitoring = "urn:ietf:params:xml:ns:yang:ietf-netconf-monitoring"
)

// hello returns what the device says first.
func (ss *session) hello() netconf.Hello {
	n := ss.dev.Personality().NETCONF
	caps := []string{netconf.Base10Capability, netconf.Base11Capability, netconf.WritableRunningCapability, netconf.NotificationCapability}
	if n.Base10 {
		caps = append(caps[:1], caps[2:]...)
	}
	if !n.NoInterleave {
		caps = append(caps, netconf.InterleaveCapability)
	}
	caps = append(caps,
		opsw+"?module="+opticalSwitch+"&revision="+n.OpticalSwitch,
		plts+"?module="+polatisSwitch+"&revision="+n.PolatisSwitch,
		acmModule,
		monitoring+"?module=ietf-netconf-monitoring&revision=2010-10-04",
		"urn:ietf:params:xml:ns:yang:ietf-yang-types?module=ietf-yang-types&revision=2013-07-15",
		"urn:ietf:params:xml:ns:yang:ietf-inet-types?module=ietf-inet-types&revision=2013-07-15",
	)
	return netconf.Hello{Capabilities: caps, SessionID: uint32(ss.id)}
}

// meet reads the client's hello. One without a base version that we have, or
// with a session-id, ends the session (RFC 6241 section 8.1).
func meet(msg []byte, ours netconf.Hello) (netconf.Hello, bool) {
	n, err := netconf.Parse(msg)
	if err != nil {
		return netconf.Hello{}, false
	}
	h, err := netconf.ParseHello(n)
	common := h.Has(netconf.Base10Capability) || h.Has(netconf.Base11Capability) && ours.Has(netconf.Base11Capability)
	return h, err == nil && h.SessionID == 0 && common
}

// reply is what a request comes to.
type reply struct {
	body  []*netconf.Node // nil is <ok/>
	err   *netconf.Error
	op    emulator.Operation // of a change of the matrix, acknowledged when it says
	quiet bool               // no reply at all
	after func()             // once the reply is written
	last  bool               // the session ends
}

// fail makes a reply of an error.
func fail(err *netconf.Error) reply { return reply{err: err} }

// handle answers one request and reports whether the session goes on.
func (ss *session) handle(msg []byte, read time.Time) bool {
	// What a request brings about is reported after its reply, unless that has
	// to wait.
	ss.wire.Lock()
	defer ss.wire.Unlock()
	n, err := netconf.Parse(msg)
	if err != nil {
		if ss.framing == netconf.EndOfMessage {
			return false // base:1.0 has no word for it (RFC 6241 appendix A)
		}
		return ss.answer(netconf.RPC{}, fail(netconf.NewError(netconf.TypeRPC, netconf.MalformedMessage, "%v", err)), emulator.Fault{})
	}
	rpc, bad := netconf.ParseRPC(n)
	if bad != nil {
		return ss.answer(rpc, fail(bad), emulator.Fault{})
	}
	fault := ss.srv.Faults.Next(strings.ToUpper(rpc.Operation.Name.Local))
	var r reply
	switch fault.Kind {
	case emulator.FaultLose:
		return true
	case emulator.FaultDeny:
		r = fail(netconf.NewError(netconf.TypeApplication, netconf.OperationFailed, "Requested operation failed"))
	default:
		r = ss.dispatch(rpc.Operation)
	}
	if r.op.Number > 0 {
		ss.dev.Record(timeline.Command, read, read, r.op)
		ss.wire.Unlock()
		due := emulator.SleepUntil(ss.ctx, r.op.Ack)
		ss.wire.Lock()
		if !due {
			return false
		}
	}
	before := time.Now()
	goOn := ss.answer(rpc, r, fault)
	if goOn && r.op.Number > 0 && fault.Kind != emulator.FaultHang && fault.Kind != emulator.FaultTag && fault.Kind != emulator.FaultFlood {
		ss.dev.Record(timeline.Ack, before, time.Now(), r.op)
	}
	if r.after != nil {
		r.after()
	}
	return goOn && !r.last
}

// answer writes a reply, in the way of a fault if it has a kind, and reports
// whether the session goes on.
func (ss *session) answer(rpc netconf.RPC, r reply, f emulator.Fault) bool {
	if r.quiet || f.Kind == emulator.FaultHang {
		return true
	}
	body := r.body
	if r.err != nil {
		body = append(body, r.err.Node())
	}
	if body == nil {
		body = okBody
	}
	if f.Kind == emulator.FaultTag {
		rpc.Attrs = []xml.Attr{{Name: xml.Name{Local: "message-id"}, Value: "somebody"}}
	}
	ss.buf = netconf.AppendReply(ss.buf[:0], rpc, body...)
	return ss.emit(f)
}

var okBody = []*netconf.Node{netconf.El(netconf.Base, "ok")}

// send writes a message that is not a reply.
func (ss *session) send(n *netconf.Node, f netconf.Framing) bool {
	_, err := ss.conn.Write(netconf.AppendMessage(nil, n.Append(nil, ""), f))
	return err == nil
}
