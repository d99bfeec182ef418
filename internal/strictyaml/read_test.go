package strictyaml_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ocslab/ocslab/internal/strictyaml"
)

// Ensure a file of the greatest length is read whole, and a longer one refused.
func TestReadFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.yaml")
	for _, size := range []int{0, strictyaml.MaxSize, strictyaml.MaxSize + 1} {
		want := bytes.Repeat([]byte{'a'}, size)
		if err := os.WriteFile(path, want, 0o600); err != nil {
			t.Fatal(err)
		}
		got, err := strictyaml.ReadFile(path)
		switch {
		case size > strictyaml.MaxSize:
			if err == nil || !strings.Contains(err.Error(), "longer than 16 MiB") {
				t.Errorf("%d bytes: %v", size, err)
			}
		case err != nil || !bytes.Equal(got, want):
			t.Errorf("%d bytes: %d read, %v", size, len(got), err)
		}
	}
}
