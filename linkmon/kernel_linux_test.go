package linkmon_test

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/vishvananda/netlink"

	"github.com/ocslab/ocslab/internal/netns"
	"github.com/ocslab/ocslab/linkmon"
)

// ip runs an ip command in a namespace.
func ip(t testing.TB, ns *netns.NS, args ...string) {
	t.Helper()
	out, err := exec.Command("nsenter", append([]string{"--net=" + ns.Path(), "ip"}, args...)...).CombinedOutput()
	if err != nil {
		t.Fatalf("ip %v: %v\n%s", args, err, out)
	}
}

func source(t testing.TB, m *linkmon.Monitor, name string) linkmon.Source {
	t.Helper()
	for _, s := range m.Sources() {
		if s.Name == name {
			return s
		}
	}
	t.Fatalf("no source %s", name)
	return linkmon.Source{}
}

// until reads events until one is as wanted.
func until(t testing.TB, m *linkmon.Monitor, what string, wanted func(linkmon.Event) bool) linkmon.Event {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	for {
		e, err := m.Next(ctx)
		if err != nil {
			t.Fatalf("waiting for %s: %v", what, err)
		}
		if wanted(e) {
			return e
		}
	}
}

// Whatever is done to the carriers, each transition is reported once, in order, with
// an interval that holds it, and each announcement belongs to its transition.
func TestTransitions(t *testing.T) {
	ns := newNS(t, "gpu1")
	taps := newTaps(t, ns, 3)
	for _, tc := range []struct {
		name string
		opt  linkmon.Options
		bpf  bool
	}{
		{"observe", linkmon.Options{}, true},
		{"sync", linkmon.Options{Sync: true}, true},
		{"sync without BPF", linkmon.Options{Sync: true, NoBPF: true}, false},
		{"counters only", linkmon.Options{NoNetlink: true}, false},
		{"slow", linkmon.Options{Poll: 6 * time.Millisecond}, true},
		{"tight", linkmon.Options{Tight: true}, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			for _, p := range taps {
				if !p.up {
					if _, err := p.toggle(); err != nil {
						t.Fatal(err)
					}
				}
			}
			m := start(t, tc.opt, ns)
			if s := source(t, m, "bpf"); s.On != tc.bpf || s.On == (s.Why != "") {
				t.Errorf("%+v", s)
			}
			var truth []toggled
			random := rand.New(rand.NewPCG(7, 7))
			for range 10 { // bursts, and rests
				truth = append(truth, churn(t, taps, 1+random.IntN(40), time.Duration(random.IntN(300))*time.Microsecond)...)
				time.Sleep(time.Duration(random.IntN(5)) * time.Millisecond)
			}
			flush(t, m)
			a := account(t, m, len(truth))
			events := queued(t, m)
			v := judge(taps, truth, events)
			if v.lost != 0 || v.wrong != 0 {
				t.Errorf("%d lost, %d wrong of %d", v.lost, v.wrong, len(truth))
			}
			if a.Announced != len(v.late) || tc.opt.Sync && a.Announced == 0 || tc.opt.NoNetlink && a.Announced > 0 {
				t.Errorf("%d announced, %d seen", a.Announced, len(v.late))
			}
			for _, e := range of(events, linkmon.Announcement) {
				if want := map[bool]string{true: "netlink+bpf", false: "netlink"}[tc.bpf]; e.Source != want || tc.bpf && e.Seen.Width() != 0 {
					t.Errorf("%+v", e)
				}
				if e.Seen.Latest < e.Latest {
					t.Errorf("announced before it happened: %+v", e)
				}
			}
			if rest(t, m); m.Account().Reported < len(truth) {
				t.Error("the account has shrunk")
			}
		})
	}
}

// The same as an ordinary listener has it: the accounting shows what that misses.
func TestNoCounters(t *testing.T) {
	ns := newNS(t, "gpu1")
	taps := newTaps(t, ns, 3)
	listener := start(t, linkmon.Options{NoCounters: true}, ns)
	monitor := start(t, linkmon.Options{}, ns)
	truth := churn(t, taps, 300, 100*time.Microsecond)
	flush(t, monitor)
	account(t, monitor, len(truth))

	flush(t, listener)
	a := listener.Account()
	if a.Counted != len(truth) || a.Reported >= len(truth) || a.Merged != 0 || a.Err() == nil {
		t.Errorf("%+v", a)
	}
	// The state that remains is announced at last, in the kernel's own time.
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		wrong := 0
		for i, l := range listener.Links() {
			if l.Carrier != taps[i].up {
				wrong++
			}
		}
		if wrong == 0 {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("%+v", listener.Links())
		}
	}
	for _, e := range of(queued(t, listener), linkmon.Transition) {
		if e.Source != "netlink+bpf" || e.Shared != 1 {
			t.Errorf("%+v", e)
		}
	}
	if s := source(t, listener, "counters"); s.On || s.Why == "" {
		t.Errorf("%+v", s)
	}
	taps[0].f.Close()
	until(t, listener, "removal", func(e linkmon.Event) bool { return e.Kind == linkmon.Removed })
	if got := len(rest(t, monitor)); got == 0 {
		t.Error("nothing")
	}
}

// More is announced than the socket holds.
func TestOverrun(t *testing.T) {
	ns := newNS(t, "gpu1")
	taps := newTaps(t, ns, 2)
	for _, opt := range []linkmon.Options{{Sync: true}, {Sync: true, NoBPF: true}} {
		m := start(t, opt, ns, "tap0")
		release := m.Stall(4096)
		for i := range 50 {
			ip(t, ns, "link", "set", "tap0", "alias", fmt.Sprint(i))
		}
		ip(t, ns, "link", "set", "tap0", "down") // of which nobody hears
		up := taps[0].up
		for range 6 {
			if _, err := taps[0].toggle(); err != nil {
				t.Fatal(err)
			}
		}
		release()
		flush(t, m)
		events := queued(t, m)
		found := false
		for _, e := range of(events, linkmon.Gap) {
			found = found || e.Source == "netlink" && strings.Contains(e.Text, "more than the socket holds")
		}
		if !found {
			t.Errorf("no gap: %v", events)
		}
		account(t, m, 6)
		flush(t, m) // the first has come upon the overrun, this one looks again
		if l := m.Links()[0]; l.OperState != "down" {
			t.Errorf("not looked at again: %+v", l)
		}
		// And it goes on.
		ip(t, ns, "link", "set", "tap0", "up")
		if _, err := taps[0].toggle(); err != nil {
			t.Fatal(err)
		}
		until(t, m, "an announcement", func(e linkmon.Event) bool {
			return e.Kind == linkmon.Announcement && e.Number == 7 && e.Up == !up
		})
		m.Close()
	}
}

func TestInterfacesComeAndGo(t *testing.T) {
	for _, opt := range []linkmon.Options{{}, {NoBPF: true}, {NoNetlink: true}} {
		ns := newNS(t, "gpu1")
		other := newTap(t, ns, "mgmt0")
		m := start(t, opt, ns, "tap*", "rail0")
		if len(m.Links()) != 0 {
			t.Errorf("watches %v", m.Links())
		}
		p := newTap(t, ns, "tap0")
		for range 4 {
			if _, err := p.toggle(); err != nil {
				t.Fatal(err)
			}
		}
		flush(t, m)
		if got := of(queued(t, m), linkmon.Added); len(got) != 1 || got[0].Interface != "tap0" {
			t.Errorf("added: %v", got)
		}
		account(t, m, 4)

		ip(t, ns, "link", "set", "tap0", "down")
		ip(t, ns, "link", "set", "tap0", "name", "rail7")
		ip(t, ns, "link", "set", "rail7", "up")
		ip(t, ns, "link", "set", "mgmt0", "name", "rail0")
		flush(t, m)
		events := queued(t, m)
		if got := of(events, linkmon.Renamed); len(got) != 1 || got[0].Interface != "rail7" || got[0].Text != "tap0" {
			t.Errorf("renamed: %v", got)
		}
		if got := of(events, linkmon.OperState); !opt.NoNetlink && len(got) == 0 {
			t.Error("no state")
		}
		moved := m.Account().Reported
		for range 3 {
			if _, err := p.toggle(); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := other.toggle(); err != nil {
			t.Fatal(err)
		}
		flush(t, m)
		account(t, m, moved+4)

		p.f.Close()
		e := until(t, m, "removal", func(e linkmon.Event) bool { return e.Kind == linkmon.Removed })
		if e.Interface != "rail7" {
			t.Errorf("removed: %v", e)
		}
		flush(t, m)
		if err := m.Account().Err(); err != nil {
			t.Error(err)
		}
		if got := m.Links(); len(got) != 1 || got[0].Interface != "rail0" || got[0].Carrier || got[0].OperState == "" {
			t.Errorf("links: %+v", got)
		}
		m.Close()
		other.f.Close()
	}
}

// An interface that comes from elsewhere brings a past that did not happen here.
func TestMovedIn(t *testing.T) {
	here, there := newNS(t, "gpu1"), newNS(t, "gpu2")
	p := newTap(t, there, "tap0")
	for range 6 {
		if _, err := p.toggle(); err != nil {
			t.Fatal(err)
		}
	}
	from := start(t, linkmon.Options{}, there, "tap*")
	m := start(t, linkmon.Options{}, here, "tap*")
	ip(t, there, "link", "set", "tap0", "netns", fmt.Sprint(holder(t, here)))
	until(t, m, "the newcomer", func(e linkmon.Event) bool { return e.Kind == linkmon.Added })
	ip(t, here, "link", "set", "tap0", "up")
	flush(t, m)
	n := m.Account().Reported
	if _, err := p.toggle(); err != nil {
		t.Fatal(err)
	}
	flush(t, m)
	if n > 1 { // setting it up may count
		t.Errorf("%d transitions of before", n)
	}
	account(t, m, n+1)
	until(t, from, "its leaving", func(e linkmon.Event) bool { return e.Kind == linkmon.Removed })
	flush(t, from)
	if a := from.Account(); a.Err() != nil || a.Reported > 1 {
		t.Errorf("%+v", a)
	}
}

// holder returns a process in the namespace, which ip can be told of.
func holder(t testing.TB, ns *netns.NS) int {
	t.Helper()
	cmd := exec.Command("nsenter", "--net="+ns.Path(), "cat")
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { in.Close(); _ = cmd.Wait() })
	// When it echoes it is inside.
	if _, err := io.WriteString(in, "x"); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(out, make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	return cmd.Process.Pid
}

// The namespace ends while it is watched; the other host goes on.
func TestNamespaceGone(t *testing.T) {
	dying, err := netns.New("gpu1")
	needRoot(t)
	if err != nil {
		t.Fatal(err)
	}
	err = dying.Do(func() error {
		return netlink.LinkAdd(&netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: "nic0"}, PeerName: "nic1"})
	})
	if err != nil {
		t.Fatal(err)
	}
	alive := newNS(t, "gpu2")
	taps := newTaps(t, alive, 1)
	m, err := linkmon.Start(t.Context(), linkmon.Options{NoNetlink: true, Hosts: []linkmon.Host{{Name: "gpu1", NS: dying}, {Name: "gpu2", NS: alive}}})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	if n := len(m.Links()); n != 3 {
		t.Errorf("%v", m.Links())
	}
	dying.Close()
	for range 2 {
		e := until(t, m, "removal", func(e linkmon.Event) bool { return e.Kind == linkmon.Removed })
		if e.Host != "gpu1" {
			t.Errorf("%v", e)
		}
	}
	truth := churn(t, taps, 20, time.Millisecond)
	flush(t, m)
	if v := judge(taps, truth, queued(t, m)); v.lost != 0 || v.wrong != 0 {
		t.Errorf("%+v", v)
	}
	if err := m.Account().Err(); err != nil {
		t.Error(err)
	}
}

func TestManyInterfaces(t *testing.T) {
	ns := newNS(t, "gpu1")
	taps := newTaps(t, ns, 256)
	m := start(t, linkmon.Options{}, ns, "tap*")
	if n := len(m.Links()); n != 256 {
		t.Fatalf("watches %d", n)
	}
	truth := churn(t, taps, 2000, 0)
	flush(t, m)
	account(t, m, len(truth))
	if v := judge(taps, truth, queued(t, m)); v.lost != 0 || v.wrong != 0 {
		t.Errorf("%d lost, %d wrong", v.lost, v.wrong)
	}
}

// Messages about interfaces that are of no interest do not fill the socket.
func TestForeignMessages(t *testing.T) {
	ns := newNS(t, "gpu1")
	newTaps(t, ns, 2)
	for _, opt := range []linkmon.Options{{}, {NoBPF: true}} {
		m := start(t, opt, ns, "tap0")
		release := m.Stall(4096)
		for i := range 30 {
			ip(t, ns, "link", "set", "tap1", "alias", fmt.Sprint(i))
		}
		release()
		flush(t, m)
		for _, e := range of(queued(t, m), linkmon.Gap) {
			if e.Source == "netlink" {
				t.Errorf("%v", e)
			}
		}
		m.Close()
	}
}

const userTest = "OCSLAB_LINKMON_USER"

// An ordinary user gets the counters and is told what is missing.
func TestOrdinaryUser(t *testing.T) {
	if os.Getenv(userTest) == "" {
		needRoot(t)
		bin := t.TempDir() + "/linkmon.test"
		self, err := os.ReadFile("/proc/self/exe")
		if err != nil {
			t.Fatal(err)
		}
		// Where this binary is, others may not look.
		if err := os.WriteFile(bin, self, 0o755); err != nil {
			t.Fatal(err)
		}
		for dir := t.TempDir(); dir != "/tmp" && dir != "/"; dir = dir[:max(strings.LastIndex(dir, "/"), 1)] {
			if err := os.Chmod(dir, 0o755); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.Chmod(bin[:strings.LastIndex(bin, "/")], 0o755); err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command(bin, "-test.run", "^TestOrdinaryUser$", "-test.v")
		cmd.Dir, cmd.Env = "/", append(os.Environ(), userTest+"=1")
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
		if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), "--- PASS: TestOrdinaryUser") {
			t.Errorf("%v\n%s", err, out)
		}
		return
	}
	m, err := linkmon.Start(t.Context(), linkmon.Options{Sync: true, Hosts: []linkmon.Host{{Name: "me", Interfaces: []string{"lo"}}}})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	flush(t, m)
	account(t, m, 0)
	if l := m.Links(); len(l) != 1 || l[0].Interface != "lo" {
		t.Errorf("%+v", l)
	}
	want := map[string]struct {
		on  bool
		why string
	}{"counters": {true, ""}, "netlink": {true, "CAP_NET_ADMIN"}, "bpf": {false, "CAP_BPF"}, "sync": {true, ""}}
	for _, s := range m.Sources() {
		if w := want[s.Name]; s.On != w.on || !strings.Contains(s.Why, w.why) || w.why == "" && s.Why != "" {
			t.Errorf("%+v", s)
		}
	}
}

// The last that a link did is told by the message of its end, when no sweep comes
// in between.
func TestFarewell(t *testing.T) {
	ns := newNS(t, "gpu1")
	p := newTap(t, ns, "tap0")
	m := start(t, linkmon.Options{Poll: time.Hour}, ns)
	flush(t, m)
	for range 3 {
		if _, err := p.toggle(); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := p.toggle(); err != nil { // up, which closing it ends
		t.Fatal(err)
	}
	p.f.Close()
	e := until(t, m, "the first transition", func(e linkmon.Event) bool { return e.Kind == linkmon.Transition })
	if e.Up || e.Number != 1 || e.Shared != 5 {
		t.Errorf("%+v", e)
	}
	until(t, m, "removal", func(e linkmon.Event) bool { return e.Kind == linkmon.Removed })
	account(t, m, 5)
}

// Netlink fails for good; the counters go on.
func TestDeaf(t *testing.T) {
	ns := newNS(t, "gpu1")
	taps := newTaps(t, ns, 1)
	m := start(t, linkmon.Options{}, ns)
	if err := m.Deafen(); err != nil {
		t.Fatal(err)
	}
	until(t, m, "the gap", func(e linkmon.Event) bool {
		return e.Kind == linkmon.Gap && strings.Contains(e.Text, "nothing is announced from here on")
	})
	truth := churn(t, taps, 10, time.Millisecond)
	flush(t, m)
	account(t, m, len(truth))
	for deadline := time.Now().Add(10 * time.Second); source(t, m, "netlink").On || source(t, m, "bpf").On; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%+v", m.Sources())
		}
	}
}
