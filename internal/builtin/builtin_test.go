package builtin_test

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/ocslab/ocslab/internal/builtin"
)

// Ensure that files are found by name, those of the user by path, and that a name cannot
// lead out of the folder.
func TestFiles(t *testing.T) {
	t.Parallel()
	f := builtin.Files{FS: fstest.MapFS{
		"models/b.yaml": {Data: []byte("b")}, "models/a.yaml": {Data: []byte("a")},
		"models/notes.txt": {}, "secret.yaml": {Data: []byte("secret")},
	}, Dir: "models", What: "model"}
	if got, want := f.Names(), []string{"a", "b"}; !reflect.DeepEqual(got, want) {
		t.Errorf("names: %v, want %v", got, want)
	}
	if file, data, err := f.Read("a"); file != "a.yaml" || string(data) != "a" || err != nil {
		t.Errorf("a: %s, %q, %v", file, data, err)
	}
	for _, name := range []string{"c", "", "../secret", "notes.txt", "models/a"} {
		if _, data, err := f.Read(name); err == nil || !strings.Contains(err.Error(), "want one of a, b") {
			t.Errorf("%q: %q, %v", name, data, err)
		}
	}
	own := filepath.Join(t.TempDir(), "own.yml")
	if _, _, err := f.Read(own); err == nil || !strings.Contains(err.Error(), own) {
		t.Errorf("a file that is not there: %v", err)
	}
	if err := os.WriteFile(own, []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	if file, data, err := f.Read(own); file != own || string(data) != "mine" || err != nil {
		t.Errorf("%s: %s, %q, %v", own, file, data, err)
	}
}
