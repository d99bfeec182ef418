package opus_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/ocslab/ocslab/topology/opus"
)

func FuzzParseID(f *testing.F) {
	f.Add("001")
	f.Add("3")
	f.Add("0\xff1")
	f.Fuzz(func(t *testing.T, text string) {
		id, err := figure8.ParseID(text)
		if err != nil {
			if !errors.Is(err, opus.ErrJob) || len(err.Error()) > 400 {
				t.Errorf("%q: %v", text, err)
			}
			return
		}
		if id.String() != text || strings.TrimLeft(text, "0") != strings.TrimLeft(id.Decimal(), "0") {
			t.Errorf("%q is read as %s", text, id)
		}
		m, err := opus.Build(figure8, id, opus.Ring)
		if err != nil || m.Len() > 12 {
			t.Errorf("%s: %v, %v", id, m, err)
		}
	})
}

func FuzzFindGroup(f *testing.F) {
	f.Add("dp/3")
	f.Add("pp/04")
	f.Add("cp/-1")
	f.Add("/")
	f.Fuzz(func(t *testing.T, name string) {
		g, ok := figure8.FindGroup(name)
		if ok && (g.Name != name || len(g.Members) != []int{3, 2, 2}[g.Axis]) || !ok && g.Members != nil {
			t.Errorf("%q: %+v, %v", name, g, ok)
		}
	})
}

func FuzzFromBinary(f *testing.F) {
	f.Add("110", 1)
	f.Add("110", 3)
	f.Add("12", 2)
	f.Fuzz(func(t *testing.T, text string, axis int) {
		id, err := figure8.FromBinary(text, axis)
		if err != nil {
			if !errors.Is(err, opus.ErrJob) {
				t.Errorf("%q, %d: %v", text, axis, err)
			}
			return
		}
		if id.Binary() != text {
			t.Errorf("%q, %d is read as %s", text, axis, id)
		}
	})
}
