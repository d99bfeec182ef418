package proto

import (
	"fmt"
	"io"
	"math"
	"net"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// drawHot draws a message that has its own way through the codec, mostly with what it has in practice.
func drawHot(t *rapid.T) Message {
	text := rapid.OneOf(rapid.SampledFrom([]string{"", "dp/3", "pp/0", "0121", "noop", "applied", "demand", "<&>", "\"\\", "ü", "\u2028", "\xff", "\x7f", "a\nb"}), rapid.String())
	u := rapid.OneOf(rapid.Uint64(), rapid.Uint64Range(0, 100), rapid.SampledFrom([]uint64{1e18 - 1, 1e18, math.MaxUint64}))
	i := rapid.OneOf(rapid.Int64(), rapid.Int64Range(-100, 100), rapid.SampledFrom([]int64{1 - 1e18, 1e18, math.MinInt64, math.MaxInt64}))
	n := rapid.OneOf(rapid.Int(), rapid.IntRange(-3, 300))
	ref := rapid.Custom(func(t *rapid.T) OpRef {
		return OpRef{Group: text.Draw(t, "group"), Op: u.Draw(t, "op"), Way: n.Draw(t, "way")}
	})
	switch rapid.IntRange(0, 2).Draw(t, "kind") {
	case 0:
		return &TopoAck{Req: u.Draw(t, "req"), ID: text.Draw(t, "id"), Generation: u.Draw(t, "generation"), Result: Result(text.Draw(t, "result")),
			ReadyNS: i.Draw(t, "ready"), CommandNS: i.Draw(t, "command"), SwitchAckNS: i.Draw(t, "ack"), VerifiedNS: i.Draw(t, "verified"),
			Removed: n.Draw(t, "removed"), Added: n.Draw(t, "added"), Lanes: n.Draw(t, "lanes")}
	case 1:
		m := &TopoWrite{Req: u.Draw(t, "req"), Epoch: u.Draw(t, "epoch"), OpRef: ref.Draw(t, "ref"), Mode: Mode(text.Draw(t, "mode")), IssueNS: i.Draw(t, "issue")}
		if rapid.Bool().Draw(t, "has last") {
			m.Last = new(ref.Draw(t, "last"))
		}
		return m
	default:
		return &Release{Epoch: u.Draw(t, "epoch"), OpRef: ref.Draw(t, "ref")}
	}
}

// sameAsAny checks that a body means the same read either way.
func sameAsAny(t interface{ Fatalf(string, ...any) }, body []byte) {
	quick := parseHot(body)
	if quick == nil {
		return
	}
	slow, err := parseAny(body)
	if diff := cmp.Diff(slow, quick); err != nil || diff != "" {
		t.Fatalf("%q: encoding/json says %v; - it, + the quick way:\n%s", body, err, diff)
	}
}

// TestHot: messages with their own way through the codec are the same bytes and mean the same as with encoding/json, and so does what
// is nearly one.
func TestHot(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := drawHot(t)
		want, err := appendAny([]byte("before"), m)
		if err != nil {
			t.Fatal(err)
		}
		got, err := Append([]byte("before"), m)
		if diff := cmp.Diff(string(want), string(got)); err != nil || diff != "" {
			t.Fatalf("%v, %s", err, diff)
		}
		body := want[len("before")+4:]
		sameAsAny(t, body)
		for range 10 {
			near := append([]byte(nil), body...)
			at := rapid.IntRange(0, len(near)-1).Draw(t, "at")
			switch rapid.IntRange(0, 2).Draw(t, "how") {
			case 0:
				near[at] = rapid.SampledFrom([]byte("\"\\{}:,0-.eu \x00\x80")).Draw(t, "byte")
			case 1:
				near = append(near[:at], near[at+1:]...)
			case 2:
				near = append(near[:at:at], append([]byte(rapid.SampledFrom([]string{"0", "-", " ", `"`, ",", "}", "\x80"}).Draw(t, "more")), body[at:]...)...)
			}
			sameAsAny(t, near)
		}
	})
}

// TestHot_Used: what ranks send in practice takes the quick way.
func TestHot_Used(t *testing.T) {
	for _, m := range []Message{
		&TopoAck{Req: 12, ID: "0121", Generation: 7, Result: Applied, ReadyNS: 1 << 55, CommandNS: 1, SwitchAckNS: 2, VerifiedNS: 3, Removed: 8, Added: 8},
		&TopoAck{Req: 12, Result: NoOp},
		&TopoWrite{Req: 1, Epoch: 3, OpRef: OpRef{Group: "pp/1", Op: 5, Way: 1}, Mode: Provision, Last: &OpRef{Group: "dp/0", Op: 4}, IssueNS: 1 << 55},
		&TopoWrite{Req: 1, Epoch: 3, OpRef: OpRef{Group: "dp/1"}, Mode: Demand},
		&Release{Epoch: 3, OpRef: OpRef{Group: "dp/1", Op: 5}},
	} {
		frame, ok := appendHot(nil, m)
		if !ok {
			t.Errorf("%+v is not written the quick way", m)
			continue
		}
		if diff := cmp.Diff(m, parseHot(frame[4:])); diff != "" {
			t.Error(diff)
		}
	}
	if m, ok := appendHot(nil, &Release{OpRef: OpRef{Group: strings.Repeat("x", MaxFrame)}}); ok || m != nil {
		t.Errorf("a frame of %d bytes was written", len(m))
	}
}

// TestHot_Fields: a field that is added to one of the messages must be added here, too.
func TestHot_Fields(t *testing.T) {
	for _, empty := range []Message{&TopoAck{}, &TopoWrite{}, &Release{}} {
		for _, f := range reflect.VisibleFields(reflect.TypeOf(empty).Elem()) {
			v := reflect.New(reflect.TypeOf(empty).Elem())
			switch one := v.Elem().FieldByIndex(f.Index); one.Kind() {
			case reflect.String:
				one.SetString("x")
			case reflect.Int, reflect.Int64:
				one.SetInt(7)
			case reflect.Uint64:
				one.SetUint(7)
			case reflect.Pointer:
				one.Set(reflect.New(one.Type().Elem()))
			case reflect.Struct: // what is in it is visited, too
			default:
				t.Fatalf("%s of %s is a %s, which the quick way does not know", f.Name, empty.kind(), one.Kind())
			}
			m := v.Interface().(Message)
			want, err := appendAny(nil, m)
			if err != nil {
				t.Fatal(err)
			}
			got, _ := appendHot(nil, m)
			if diff := cmp.Diff(string(want), string(got)); diff != "" {
				t.Errorf("%s of %s: - encoding/json, + the quick way:\n%s", f.Name, m.kind(), diff)
			}
			if back := parseHot(want[4:]); !reflect.DeepEqual(back, m) {
				t.Errorf("%s of %s: the quick way reads %+v, want %+v", f.Name, m.kind(), back, m)
			}
		}
	}
}

func FuzzHot(f *testing.F) {
	for _, m := range []Message{&TopoAck{ID: "01", Result: NoOp}, &TopoWrite{Mode: Demand, Last: &OpRef{Group: "dp/0"}}, &Release{OpRef: OpRef{Group: "dp/1"}}} {
		frame, _ := appendHot(nil, m)
		f.Add(frame[4:])
	}
	f.Fuzz(func(t *testing.T, body []byte) { sameAsAny(t, body) })
}

// TestEager: what is taken at once and what is left make the whole, and a peer that does not read makes nobody wait.
func TestEager(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	a, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	b, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	e := NewEager(a)
	if left := e.Write([]byte("hello")); len(left) > 0 {
		t.Errorf("%q is left of a few bytes", left)
	}
	sent := 5
	chunk := make([]byte, 1<<20)
	for taken := len(chunk); taken == len(chunk); sent += taken {
		if taken = len(chunk) - len(e.Write(chunk)); sent > 1<<30 {
			t.Fatal("a socket that nobody reads takes a gigabyte")
		}
	}
	a.Close()
	if got := e.Write(chunk); len(got) != len(chunk) {
		t.Error("a closed socket takes something")
	}
	all, err := io.ReadAll(b)
	if err != nil || len(all) != sent || string(all[:5]) != "hello" {
		t.Errorf("%d bytes came of %d: %v", len(all), sent, err)
	}
	p, q := net.Pipe()
	defer q.Close()
	defer p.Close()
	for _, e := range []*Eager{nil, NewEager(p)} {
		if left := e.Write([]byte("x")); string(left) != "x" {
			t.Errorf("%v has taken something", e)
		}
	}
}

func BenchmarkCodec(b *testing.B) {
	for _, m := range []Message{
		&TopoAck{Req: 12, ID: "0121", Generation: 7, Result: Applied, ReadyNS: 1 << 55, CommandNS: 1 << 55, SwitchAckNS: 1 << 55, VerifiedNS: 1 << 55, Removed: 8, Added: 8},
		&TopoWrite{Req: 1, Epoch: 3, OpRef: OpRef{Group: "pp/1", Op: 5, Way: 1}, Mode: Demand, IssueNS: 1 << 55},
		&Release{Epoch: 3, OpRef: OpRef{Group: "dp/1", Op: 5}},
	} {
		frame, err := Append(nil, m)
		if err != nil {
			b.Fatal(err)
		}
		for name, write := range map[string]func([]byte, Message) ([]byte, error){"own": Append, "json": appendAny} {
			b.Run(fmt.Sprintf("%s/append-%s", m.kind(), name), func(b *testing.B) {
				b.ReportAllocs()
				var buf []byte
				for b.Loop() {
					buf, _ = write(buf[:0], m)
				}
			})
		}
		for name, read := range map[string]func([]byte) (Message, error){"own": Parse, "json": parseAny} {
			b.Run(fmt.Sprintf("%s/parse-%s", m.kind(), name), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					_, _ = read(frame[4:])
				}
			})
		}
	}
}
