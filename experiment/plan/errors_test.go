package plan_test

import (
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	"github.com/ocslab/ocslab/experiment/plan"
	"github.com/ocslab/ocslab/internal/strictyaml"
	"github.com/ocslab/ocslab/lab"
)

var update = flag.Bool("update", false, "write the golden files")

// Ensure each mistake is told with its position, its reason, and all of a file at once.
func TestErrors(t *testing.T) {
	for _, name := range []string{"parse", "resolve"} {
		path := filepath.Join("testdata", "errors", name+".txtar")
		a, err := txtar.ParseFile(path)
		if err != nil {
			t.Fatal(err)
		}
		files := map[string][]byte{}
		for _, f := range a.Files {
			files[f.Name] = f.Data
		}
		written := &txtar.Archive{Comment: a.Comment}
		for _, f := range a.Files {
			base, isYAML := strings.CutSuffix(f.Name, ".yaml")
			if !isYAML {
				continue
			}
			written.Files = append(written.Files, f)
			if strings.HasSuffix(base, "lab") {
				continue
			}
			t.Run(name+"/"+base, func(t *testing.T) {
				e, err := plan.Parse(f.Name, f.Data)
				if err == nil && name == "resolve" {
					of, real := "lab.yaml", strings.HasPrefix(base, "real")
					if strings.HasPrefix(base, "bare") {
						of, real = "bare-lab.yaml", true
					}
					l, labErr := lab.Parse(of, files[of])
					if labErr != nil {
						t.Fatal(labErr)
					}
					_, err = e.Resolve(l, plan.Options{Emulated: !real})
				}
				var all strictyaml.Errors
				if !errors.As(err, &all) {
					t.Fatalf("err=%v, want problems with positions", err)
				}
				var lines strings.Builder
				for _, e := range all {
					lines.WriteString(e.Error() + "\n")
				}
				if d := cmp.Diff(string(files[base+".err"]), lines.String()); d != "" && !*update {
					t.Errorf("-want +got\n%s", d)
				}
				written.Files = append(written.Files, txtar.File{Name: base + ".err", Data: []byte(lines.String())})
			})
		}
		if *update {
			if err := os.WriteFile(path, txtar.Format(written), 0o666); err != nil {
				t.Fatal(err)
			}
		}
	}
}
