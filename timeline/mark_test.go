package timeline_test

import (
	"bytes"
	"encoding/json"
	"math"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/ocslab/ocslab/timeline"
)

var anyMark = rapid.Custom(func(t *rapid.T) timeline.Mark {
	return timeline.Mark{
		Stage:           rapid.SampledFrom(timeline.Stages()).Draw(t, "stage"),
		Subject:         rapid.SampledFrom([]string{"", "rail0", "3>35", "gpu1/ens1f0"}).Draw(t, "subject"),
		Host:            rapid.SampledFrom([]string{"gpu1", "gpu2"}).Draw(t, "host"),
		Interval:        anyInterval.Draw(t, "interval"),
		Source:          rapid.SampledFrom([]string{"counters", "netlink", "bpf", "bpf+netlink", ""}).Draw(t, "source"),
		Detail:          rapid.SampledFrom([]string{"", "late", "ENOBUFS <gap>", "late; a"}).Draw(t, "detail"),
		Reconfiguration: rapid.IntRange(0, 3).Draw(t, "reconfiguration"),
	}
})

func TestStages(t *testing.T) {
	stages := timeline.Stages()
	if got, want := len(stages), 9; got != want {
		t.Fatalf("%d stages, want %d", got, want)
	}
	for _, s := range stages {
		if !s.Valid() {
			t.Errorf("%s is not valid", s)
		}
	}
	stages[0] = "gone"
	if timeline.Stages()[0] != timeline.Command {
		t.Error("a caller could change the canonical order")
	}
	if timeline.Stage("").Valid() || timeline.Stage("Light").Valid() {
		t.Error("an unknown stage is valid")
	}
}

func TestMark_JSON(t *testing.T) {
	m := timeline.Mark{
		Stage: timeline.CarrierUp, Subject: "gpu1/ens1f0", Host: "gpu1",
		Interval: timeline.Between(math.MinInt64, math.MaxInt64),
		Source:   "counters", Reconfiguration: 3,
	}
	const plain = `{"kind":"mark","stage":"carrier-up","subject":"gpu1/ens1f0","host":"gpu1",` +
		`"earliest_ns":-9223372036854775808,"latest_ns":9223372036854775807,"source":"counters","reconfiguration":3}`
	got, err := json.Marshal(m)
	if err != nil || string(got) != plain {
		t.Errorf("got %s, %v\nwant %s", got, err, plain)
	}

	// A cross-connect stays readable when the caller's encoder allows it.
	m.Detail, m.Subject, m.Interval = "fast", "3>35", timeline.Point(0)
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(m); err != nil {
		t.Fatal(err)
	}
	const detailed = `{"kind":"mark","stage":"carrier-up","subject":"3>35","host":"gpu1",` +
		`"earliest_ns":0,"latest_ns":0,"source":"counters","detail":"fast","reconfiguration":3}` + "\n"
	if b.String() != detailed {
		t.Errorf("got %s\nwant %s", b.String(), detailed)
	}
	if got, want := m.String(), "carrier-up of 3>35 at 0 ns (counters)"; got != want {
		t.Errorf("String = %q, want %q", got, want)
	}
}

func TestMark_JSONStrict(t *testing.T) {
	const good = `{"kind":"mark","stage":"ack","subject":"s","host":"h","earliest_ns":1,"latest_ns":2,"source":"x","reconfiguration":1}`
	var m timeline.Mark
	if err := json.Unmarshal([]byte(good), &m); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct{ old, new, want string }{
		{`"mark"`, `"summary"`, `kind is "summary"`},
		{`"kind":"mark",`, ``, `kind is ""`},
		{`"ack"`, `"acked"`, `unknown stage "acked"`},
		{`"earliest_ns":1`, `"earliest_ns":3`, "earliest_ns 3 is after latest_ns 2"},
		{`"earliest_ns":1,`, ``, "both needed"},
		{`"latest_ns":2,`, ``, "both needed"},
		{`"latest_ns":2`, `"latest_ns":2.5`, "2.5"},
		{`"latest_ns":2`, `"latest_ns":9223372036854775808`, "9223372036854775808"},
		{`"source"`, `"sauce"`, `unknown field "sauce"`},
		{`"reconfiguration":1`, `"reconfiguration":-1`, "reconfiguration -1 is negative"},
		{good, `null`, `kind is ""`},
	} {
		before := m
		err := json.Unmarshal([]byte(strings.Replace(good, tc.old, tc.new, 1)), &m)
		if err == nil || !strings.Contains(err.Error(), tc.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s -> %s: error %v, want %q in it", tc.old, tc.new, err, tc.want)
		}
		if m != before {
			t.Errorf("%s -> %s changed the mark", tc.old, tc.new)
		}
	}
	if err := m.UnmarshalJSON([]byte(good + good)); err == nil {
		t.Error("two objects were read as one mark")
	}

	for _, bad := range []timeline.Mark{
		{Stage: "acked"},
		{Stage: timeline.Ack, Interval: timeline.Interval{Earliest: 2, Latest: 1}},
		{Stage: timeline.Ack, Reconfiguration: -1},
	} {
		if out, err := json.Marshal(bad); err == nil {
			t.Errorf("%+v was written as %s", bad, out)
		}
	}
}

func TestMark_JSONRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := anyMark.Draw(t, "mark")
		want.Detail = rapid.String().Draw(t, "detail")
		data, err := json.Marshal(want)
		if err != nil {
			t.Fatal(err)
		}
		var got timeline.Mark
		if err := json.Unmarshal(data, &got); err != nil || got != want {
			t.Fatalf("got %+v, %v\nwant %+v", got, err, want)
		}
	})
}

func FuzzMarkJSON(f *testing.F) {
	f.Add([]byte(`{"kind":"mark","stage":"light","subject":"rail0/33","host":"h","earliest_ns":1,"latest_ns":2,"source":"opm","detail":"<d>","reconfiguration":1}`))
	f.Add([]byte(`{"KIND":"mark","stage":"ack","earliest_ns":-0,"latest_ns":0}`))
	f.Add([]byte(`null`))
	f.Add([]byte(`{"kind":"mark","Interval":{"earliest_ns":1}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		var m timeline.Mark
		if err := m.UnmarshalJSON(data); err != nil {
			if m != (timeline.Mark{}) {
				t.Fatalf("changed although refused: %+v", m)
			}
			return
		}
		out, err := m.MarshalJSON()
		if err != nil {
			t.Fatalf("read but not written: %v", err)
		}
		var again timeline.Mark
		if err := again.UnmarshalJSON(out); err != nil || again != m {
			t.Fatalf("got %+v, %v\nwant %+v", again, err, m)
		}
		if !m.Stage.Valid() || m.Earliest > m.Latest || !slices.Contains(timeline.Stages(), m.Stage) {
			t.Fatalf("accepted %+v", m)
		}
	})
}
