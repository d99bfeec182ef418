package phy

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/ocslab/ocslab/timeline"
)

func TestParseRecord(t *testing.T) {
	for _, tt := range []struct {
		text string
		want record
	}{
		{
			"6,1234,5678901234,-;mlx5_core 0000:08:00.0 ens1f0np0: Link up\n SUBSYSTEM=pci\n DEVICE=+pci:0000:08:00.0\n",
			record{0, 1234, 5678901234 * time.Microsecond, "mlx5_core 0000:08:00.0 ens1f0np0: Link up"},
		},
		{"30,7,12,-,caller=T123;systemd[1]: a;b\n", record{3, 7, 12 * time.Microsecond, "systemd[1]: a;b"}},
		{`4,8,0,c;tab\x09back\x5cslash\x5cx41 \xe2\x82\xac \xzz \x4` + "\n", record{0, 8, 0, "tab\tback\\slash\\x41 € \\xzz \\x4"}},
		{"6,9,1,-;", record{0, 9, time.Microsecond, ""}},
	} {
		got, err := parseRecord([]byte(tt.text))
		if err != nil || got != tt.want {
			t.Errorf("%q: %+v, %v\nwant %+v", tt.text, got, err, tt.want)
		}
	}
	for _, text := range []string{
		"", "6,1,2,-", "6,1,2;x", "x,1,2,-;x", "6,-1,2,-;x", "6,1,x,-;x", "-6,1,2,-;x", "4294967296,1,2,-;x",
		"6,1,9223372036854775807,-;more than an axis holds",
	} {
		if r, err := parseRecord([]byte(text)); err == nil {
			t.Errorf("%q was read as %+v", text, r)
		}
	}
}

func TestLinkLine(t *testing.T) {
	names := []string{"ens1f0", "ens1f1", "ens1f0np0", "eth0"}
	for _, tt := range []struct {
		text  string
		iface string // "": no line on a link
		up    bool
	}{
		{"mlx5_core 0000:08:00.0 ens1f0np0: Link up", "ens1f0np0", true},
		{"mlx5_core 0000:08:00.0 ens1f0np0: Link down", "ens1f0np0", false},
		{"mlx4_en: eth0: Link Up", "eth0", true},
		{"bnxt_en 0000:5e:00.0 ens1f0: NIC Link is Up, 100000 Mbps full duplex, Flow control: none", "ens1f0", true},
		{"bnxt_en 0000:5e:00.0 ens1f0: NIC Link is Down", "ens1f0", false},
		{"ice 0000:b1:00.0 ens1f1: NIC Link is up 100 Gbps Full Duplex, Requested FEC: RS-FEC, Negotiated FEC: RS-FEC", "ens1f1", true},
		{"ice 0000:b1:00.0 ens1f1: NIC Link is Down", "ens1f1", false},
		{"i40e 0000:3d:00.0 eth0: NIC Link is Up, 40 Gbps Full Duplex, Flow Control: None", "eth0", true},
		{"cxgb4 0000:02:00.4 eth0: link up, 100Gbps, full-duplex, Tx/Rx PAUSE", "eth0", true},
		{"cxgb4 0000:02:00.4 eth0: link down", "eth0", false},
		{"igb 0000:01:00.0 eth0: igb: eth0 NIC Link is Up 1000 Mbps Full Duplex, Flow Control: RX/TX", "eth0", true},
		{"igb: eth0 NIC Link is Down", "eth0", false},
		{"e1000e: eth0 NIC Link is Up 1000 Mbps Full Duplex", "eth0", true},

		{"mlx5_core 0000:08:00.0 ens9: Link up", "", false},
		{"mlx5_core 0000:08:00.0 ens1f0np0_65: Link up", "", false},
		{"mlx5_core 0000:08:00.0 xens1f0np0: Link up", "", false},
		{"IPv6: ADDRCONF(NETDEV_CHANGE): ens1f0: link becomes ready", "", false},
		{"bond0: (slave ens1f0): link status definitely up, 100000 Mbps full duplex", "", false},
		{"8021q: adding VLAN 0 to HW filter on device ens1f0", "", false},
		{"mlx5_core 0000:08:00.0 ens1f0: Up and running", "", false},
		{"ens1f0: upgrade", "", false},
		{"ens1f0: Link upset", "", false},
		{"ens1f0: Link is", "", false},
		{"ens1f0", "", false},
		{"ens1f0:", "", false},
		{"ens1f0: renamed from eth0", "", false},
		{"", "", false},
	} {
		iface, up, ok := linkLine(tt.text, names)
		if ok != (tt.iface != "") || iface != tt.iface || up != tt.up {
			t.Errorf("%q: %q, up %v, %v", tt.text, iface, up, ok)
		}
	}
	if _, _, ok := linkLine(" Link up", []string{""}); ok {
		t.Error("a link of no interface")
	}
}

func TestKmsgEvent_Mark(t *testing.T) {
	e := KmsgEvent{Interface: "ens1f0", Up: true, Interval: timeline.Between(5, 7), Text: "ens1f0: Link up"}
	want := timeline.Mark{
		Stage: timeline.Firmware, Subject: "gpu1/ens1f0", Host: "gpu1", Interval: timeline.Between(5, 7),
		Source: "kmsg", Detail: "ens1f0: Link up",
	}
	got, ok := e.Mark("gpu1")
	if diff := cmp.Diff(want, got); !ok || diff != "" {
		t.Errorf("%v, -want +got\n%s", ok, diff)
	}
	for _, e := range []KmsgEvent{{Interface: "ens1f0"}, {Lost: 3}} {
		if m, ok := e.Mark("gpu1"); ok {
			t.Errorf("%+v made %v", e, m)
		}
	}
}

// A stamp is placed so that the true moment is held, whatever the offset of the clocks is.
func TestOffset(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		truth := rapid.Int64Range(-1e12, 1e12).Draw(t, "offset")
		stamp := func(at int64) time.Duration { return time.Duration(at-truth) / 1000 * 1000 }
		draw := func(what string) int64 { return rapid.Int64Range(1e13, 1e14).Draw(t, what) }
		before, inside, after := draw("t0"), rapid.Int64Range(0, 1e6).Draw(t, "inside"), rapid.Int64Range(0, 1e6).Draw(t, "after")
		written := timeline.Between(before, before+inside+after)
		o := offsetOf(written, stamp(before+inside))
		at := draw("at")
		got := o.place(stamp(at))
		if !got.Contains(at) {
			t.Fatalf("%v does not hold %d", got, at)
		}
		if limit := written.Width() + 2*time.Microsecond; got.Width() > limit {
			t.Fatalf("%v wide, more than %v", got.Width(), limit)
		}
	})
}

// Any bytes are a record or an error, and any text a line on one of our links or not.
func FuzzParseRecord(f *testing.F) {
	f.Add([]byte("6,1234,5678901234,-;mlx5_core 0000:08:00.0 ens1f0: Link up\n SUBSYSTEM=pci\n"))
	f.Add([]byte(`4,8,0,c,caller=C1;ens1f0: NIC Link is Down\x0a` + "\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		r, err := parseRecord(b)
		if err != nil {
			return
		}
		if len(r.text) > len(b) || r.stamp < 0 {
			t.Errorf("%+v", r)
		}
		if iface, _, ok := linkLine(r.text, []string{"ens1f0"}); ok && (iface != "ens1f0" || !strings.Contains(r.text, iface)) {
			t.Errorf("%q is about %q", r.text, iface)
		}
	})
}
