package runs_test

import (
	"bytes"
	"encoding/json"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/ocslab/ocslab/experiment/runs"
	"github.com/ocslab/ocslab/timeline"
)

// text draws texts of which JSON has to escape something, also what is no UTF-8.
func text() *rapid.Generator[string] {
	return rapid.OneOf(
		rapid.SampledFrom(texts),
		rapid.String(),
		rapid.Map(rapid.SliceOf(rapid.Byte()), func(b []byte) string { return string(b) }),
		rapid.StringOf(rapid.SampledFrom([]rune("a\"\\/<>&\x00\x1f\x7f\b\f\n\r\t\u2028\u2029\ufffd€"))),
	)
}

// Ensure that marks are written as they write themselves, and read back alike, also in
// another form.
func TestMark_AsMarshalled(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := timeline.Mark{
			Stage:    rapid.SampledFrom(timeline.Stages()).Draw(t, "stage"),
			Subject:  text().Draw(t, "subject"),
			Host:     text().Draw(t, "host"),
			Interval: timeline.Between(rapid.Int64().Draw(t, "from"), rapid.Int64().Draw(t, "to")),
			Source:   text().Draw(t, "source"), Detail: text().Draw(t, "detail"),
			Reconfiguration: rapid.IntRange(0, 1<<40).Draw(t, "reconfiguration"),
		}
		want, err := m.MarshalJSON()
		if err != nil {
			t.Fatal(err)
		}
		line := runs.AppendMark(m)
		if got, ended := bytes.CutSuffix(line, []byte("\n")); !ended || !bytes.Equal(got, want) {
			t.Fatalf("line=%q, want %q", line, want)
		}
		var read timeline.Mark
		if err := read.UnmarshalJSON(want); err != nil {
			t.Fatal(err)
		}
		var spaced bytes.Buffer
		if err := json.Indent(&spaced, want, "", " "); err != nil {
			t.Fatal(err)
		}
		for _, form := range [][]byte{want, spaced.Bytes()} {
			got, err := runs.ReadMark(form)
			if err != nil {
				t.Fatalf("%s: %v", form, err)
			}
			if diff := cmp.Diff(read, got); diff != "" {
				t.Fatalf("%s (-want +got):\n%s", form, diff)
			}
		}
	})
}

// Ensure that whatever is read without package json is read by it, too, and means the same.
func FuzzReadMark(f *testing.F) {
	for _, line := range []string{
		`{"kind":"mark","stage":"light","subject":"rail0/33","host":"gpu1","earliest_ns":1,"latest_ns":2,"source":"opm","reconfiguration":13}`,
		`{"kind":"mark","stage":"light","subject":"a","host":"","earliest_ns":-9223372036854775808,"latest_ns":9223372036854775807,"source":"opm","detail":"x","reconfiguration":0}`,
		`{"kind":"mark","stage":"light","subject":"a","host":"","earliest_ns":-01,"latest_ns":99999999999999999999,"source":"opm","reconfiguration":0}`,
		`{"kind":"mark","stage":"dawn","subject":"\u003e","host":"","earliest_ns":-0,"latest_ns":1e3,"source":"opm","reconfiguration":-1}`,
	} {
		f.Add([]byte(line))
	}
	f.Fuzz(func(t *testing.T, line []byte) {
		var want timeline.Mark
		refused := want.UnmarshalJSON(line)
		got, err := runs.ReadMark(slices.Clone(line))
		if (err == nil) != (refused == nil) || err == nil && got != want {
			t.Errorf("%s: read %+v, %v; package json: %+v, %v", line, got, err, want, refused)
		}
	})
}
