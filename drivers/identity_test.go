package drivers_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/ocslab/ocslab/drivers"
)

func TestSameAddress(t *testing.T) {
	dir := t.TempDir()
	line, link := filepath.Join(dir, "tty"), filepath.Join(dir, "by-id")
	if err := os.WriteFile(line, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(line, link); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		a, b string
		want bool
	}{
		{"tl1://admin@127.0.0.1:3082", "tl1://127.0.0.1:3082", true},
		{"tl1://127.0.0.1", "tl1://127.0.0.1:3082", true}, // the default port
		{"tl1://localhost:3082", "tl1://127.0.0.1:3082", true},
		{"tl1://LOCALHOST:3082", "tl1://[::1]:3082", true},
		{"tl1://[::ffff:127.0.0.1]:3082", "tl1://127.0.0.1:3082", true},
		{"scpi://127.0.0.1:3082", "tl1://127.0.0.1:3082", true}, // a port serves one device
		{"tl1://127.0.0.1:3083", "tl1://127.0.0.1:3082", false},
		{"tl1://192.0.2.1:3082", "tl1://192.0.2.2:3082", false},
		{"tl1://name.invalid:3082", "tl1://name.invalid:3082", true},
		{"tl1://name.invalid:3082", "tl1://127.0.0.1:3082", false},
		{"tl1+serial://" + line, "scpi+serial://" + link, true},
		{"tl1+serial://" + line, "tl1://127.0.0.1:3082", false},
		{"rail0", "rail0", false}, // no URLs
	} {
		if got := drivers.SameAddress(t.Context(), tt.a, tt.b); got != tt.want {
			t.Errorf("SameAddress(%q, %q)=%v, want %v", tt.a, tt.b, got, tt.want)
		}
		if drivers.SameAddress(t.Context(), tt.a, tt.b) && drivers.AddressOf(t.Context(), tt.a) != drivers.AddressOf(t.Context(), tt.b) {
			t.Errorf("AddressOf differs for %q and %q", tt.a, tt.b)
		}
	}
}
