package emulator_test

import (
	"math"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/ocslab/ocslab/emulator"
	"github.com/ocslab/ocslab/ocs"
	"github.com/ocslab/ocslab/timeline/dist"
)

// rewritten writes a personality and reads it again.
func rewritten(t interface{ Fatalf(string, ...any) }, p *emulator.Personality) (emulator.Personality, []byte) {
	text, err := p.YAML()
	if err != nil {
		t.Fatalf("%+v: %v", *p, err)
	}
	again, err := emulator.ParsePersonality("again.yaml", text)
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	return again, text
}

// Ensure that the personalities that come with ocslab survive being written.
func TestPersonality_YAML(t *testing.T) {
	for _, name := range emulator.Models() {
		p, err := emulator.LoadPersonality(name)
		if err != nil {
			t.Fatal(err)
		}
		again, text := rewritten(t, &p)
		if d := cmp.Diff(p, again); d != "" {
			t.Errorf("%s: (-want +got):\n%s\n%s", name, d, text)
		}
	}
	bad := exact("4x4")
	bad.Size = "big"
	if text, err := bad.YAML(); err == nil {
		t.Errorf("a personality that cannot be is written as\n%s", text)
	}
}

// Ensure that what need not be said is left out.
func TestPersonality_YAML_Short(t *testing.T) {
	p, err := emulator.ParsePersonality("f", []byte(minimal))
	if err != nil {
		t.Fatal(err)
	}
	text, err := p.YAML()
	const want = "model: m\nvendor: v\nproduct: p\nfirmware: f\nsize: \"4x4\"\n" +
		"switching:\n  single: 50ms\noptics:\n  loss_db: 1\n  loss_max_db: 2\n"
	if err != nil || string(text) != want {
		t.Errorf("%v, got\n%swant\n%s", err, text, want)
	}
}

// Ensure that any personality that can be is read back equal.
func TestPersonality_YAML_Property(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		span := func(label string) time.Duration {
			return time.Duration(rapid.Int64Range(0, int64(time.Hour)).Draw(t, label))
		}
		db := func(label string) float64 { return rapid.Float64Range(0, 60).Draw(t, label) }
		extra := rapid.OneOf(rapid.Float64Range(0, 60), rapid.Just(math.Inf(1)))
		text := rapid.StringMatching(`[ -+\--~]{1,12}`)
		mode := rapid.Custom(func(t *rapid.T) dist.Mode {
			return dist.Mode{Share: rapid.Float64Range(1e-9, 1e9).Draw(t, "share"), Median: span("median"), Spread: span("spread")}
		})
		modes := rapid.Custom(func(t *rapid.T) dist.Mixture { return rapid.SliceOfN(mode, 1, 3).Draw(t, "modes") })
		path := rapid.Custom(func(t *rapid.T) emulator.Path {
			return emulator.Path{Ingress: ocs.Port(rapid.IntRange(1, 16).Draw(t, "in")), Egress: ocs.Port(rapid.IntRange(17, 32).Draw(t, "out"))}
		})
		maybe := func(label string) bool { return rapid.Bool().Draw(t, label) }
		p := emulator.Personality{
			Model: text.Draw(t, "model"), Description: rapid.String().Filter(utf8.ValidString).Draw(t, "description"),
			Vendor: text.Draw(t, "vendor"), Product: text.Draw(t, "product"), Firmware: text.Draw(t, "firmware"), Size: "16x16",
			Switching: emulator.Switching{
				Single: span("single"), Bulk: span("bulk"), Jitter: span("jitter"), Rise: span("rise"),
				Ack: rapid.SampledFrom([]emulator.AckMode{"", emulator.AckBefore, emulator.AckAfter}).Draw(t, "ack"),
			},
			Optics: emulator.Optics{
				Loss: 1, LossMax: 1 + db("max"), LossSpread: db("spread"), Repeatability: db("repeatability"),
				Launch: rapid.Float64Range(-60, 20).Draw(t, "launch"), LaunchSpread: db("launch spread"), VOAMax: db("voa"),
			},
			Monitors: emulator.Monitors{
				Sides:    rapid.SampledFrom([]emulator.MonitorSides{emulator.MonitorsNone, emulator.MonitorsEgress, emulator.MonitorsBoth}).Draw(t, "sides"),
				Accuracy: db("accuracy"), Noise: db("noise"), Floor: -db("floor"), Default: rapid.IntRange(1, 8).Draw(t, "averaging"),
			},
			Control: emulator.Control{
				Busy: rapid.SampledFrom([]emulator.BusyMode{emulator.Takeover, emulator.Deny}).Draw(t, "busy"), Boot: ocs.BootDark,
				Reboot: span("reboot"), MaxPairs: rapid.IntRange(0, 9).Draw(t, "pairs"), Failed: rapid.SliceOf(rapid.Uint32Range(1, 32)).Draw(t, "failed"),
			},
			TL1: emulator.TL1{
				NoSID: maybe("no sid"), Prompt: rapid.String().Filter(utf8.ValidString).Draw(t, "prompt"), Idle: span("idle"),
				Locks: rapid.SliceOf(rapid.Map(rapid.Uint32Range(1, 16), func(n uint32) emulator.TL1Lock { return emulator.TL1Lock{Port: n, User: "u-1"} })).Draw(t, "locks"),
			},
			SCPI:    emulator.SCPI{Gap: span("gap"), TerseErrors: maybe("terse"), ErrorQueue: rapid.IntRange(2, 30).Draw(t, "queue")},
			NETCONF: emulator.NETCONF{OpticalSwitch: rapid.SampledFrom(emulator.OpticalSwitchRevisions).Draw(t, "revision"), Base10: maybe("1.0")},
		}
		if maybe("mixed") {
			p.Switching.Modes = modes.Draw(t, "modes")
		}
		for _, c := range rapid.SliceOfDistinct(path, rapid.ID[emulator.Path]).Draw(t, "slow paths") {
			p.Switching.Paths = append(p.Switching.Paths, emulator.PathSwitching{Path: c, Modes: modes.Draw(t, "own modes")})
		}
		if maybe("port losses") {
			p.Optics.PortLoss = rapid.MapOf(rapid.Map(rapid.Uint32Range(1, 32), func(n uint32) ocs.Port { return ocs.Port(n) }), extra).Draw(t, "port losses")
		}
		if maybe("path losses") {
			p.Optics.PathLoss = rapid.MapOf(path, extra).Draw(t, "path losses")
		}
		if maybe("users") {
			p.Control.Users = []emulator.User{{Name: "root", Password: text.Draw(t, "password"), Group: emulator.Admin}}
		}
		if maybe("speaks") {
			p.Speaks = []emulator.Protocol{emulator.SpeaksSCPI}
		}
		once, _ := rewritten(t, &p)      // with defaults
		twice, as := rewritten(t, &once) // all is said
		if d := cmp.Diff(once, twice, cmpopts.EquateEmpty()); d != "" {
			t.Fatalf("(-want +got):\n%s\n%s", d, as)
		}
		if once.Model != p.Model || once.Description != p.Description || once.TL1.Prompt != p.TL1.Prompt || !cmp.Equal(once.Optics, p.Optics, cmpopts.EquateEmpty()) ||
			!cmp.Equal(once.Switching.Modes, p.Switching.Modes) || !cmp.Equal(once.Switching.Paths, p.Switching.Paths, cmpopts.EquateEmpty()) {
			t.Fatalf("%+v is written as\n%s", p, as)
		}
	})
}
