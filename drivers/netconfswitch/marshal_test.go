package netconfswitch

import (
	"encoding/xml"
	"testing"

	juniper "github.com/Juniper/go-netconf/netconf"

	"github.com/ocslab/ocslab/ocs"
)

// TestMarshal compares marshal with what the library's type says of itself.
func TestMarshal(t *testing.T) {
	for _, body := range []string{"", "<get/>", `<a b="c">&lt;</a>`} {
		rpc := juniper.NewRPCMessage([]juniper.RPCMethod{juniper.RawMethod(body), juniper.MethodLock("running")})
		want, err := xml.Marshal(rpc)
		if got := marshal(rpc); err != nil || string(got) != string(want) {
			t.Errorf("got %s, want %s, %v", got, want, err)
		}
	}
}

// BenchmarkLibrary is what the library's Exec costs besides the wire, for the
// reply to a change, and what of that is marshalling.
func BenchmarkLibrary(b *testing.B) {
	body := pairs(&announced{}, 0, one, one)
	body = (&announced{}).edit("", opticalNS, "cross-connects", body).body
	b.Run("exec", func(b *testing.B) {
		b.ReportAllocs()
		s := juniper.Session{Transport: echo{}}
		for b.Loop() {
			if _, err := s.Exec(juniper.RawMethod(body)); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("marshal", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := xml.Marshal(juniper.NewRPCMessage([]juniper.RPCMethod{juniper.RawMethod(body)})); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("ours", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			marshal(juniper.NewRPCMessage([]juniper.RPCMethod{juniper.RawMethod(body)}))
		}
	})
}

var one = ocs.MustMap(ocs.CrossConnect{Ingress: 1, Egress: 33})

// echo is a transport without a wire.
type echo struct{}

func (echo) Send([]byte) error { return nil }
func (echo) Receive() ([]byte, error) {
	return []byte(`<rpc-reply xmlns="urn:ietf:params:xml:ns:netconf:base:1.0" message-id="1"><ok/></rpc-reply>`), nil
}
func (echo) Close() error                                 { return nil }
func (echo) ReceiveHello() (*juniper.HelloMessage, error) { return &juniper.HelloMessage{}, nil }
func (echo) SendHello(*juniper.HelloMessage) error        { return nil }
func (echo) SetVersion(string)                            {}
