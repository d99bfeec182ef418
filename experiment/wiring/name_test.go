package wiring

import (
	"bytes"
	"testing"
)

func FuzzParseName(f *testing.F) {
	for _, name := range []string{"gpu1/ens1f0", "x"} {
		b, err := putName(7, name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
		f.Add(b[:len(b)-1])
		f.Add(append(b, 0, 0, 0))
	}
	f.Add([]byte("ocsp"))
	f.Fuzz(func(t *testing.T, b []byte) {
		run, name, err := parseName(b)
		if err != nil {
			return
		}
		again, err := putName(run, name)
		if err != nil {
			t.Fatalf("a name that was read cannot be written: %v", err)
		}
		if !bytes.HasPrefix(b, again) {
			t.Errorf("%q read as %q of run %d", b, name, run)
		}
	})
}
