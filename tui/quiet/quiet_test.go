package quiet

import (
	"os"
	"testing"
)

// What bubbletea calls takes an empty CI for none, so that has to be set, too.
func TestRestore(t *testing.T) {
	t.Setenv(variable, "") // which puts back what there is, too
	for _, x := range []struct {
		before, want string
		exists       bool
	}{{"", "1", false}, {"", "1", true}, {"yes", "yes", true}} {
		_ = os.Unsetenv(variable)
		if x.exists {
			_ = os.Setenv(variable, x.before)
		}
		hush()
		if got := os.Getenv(variable); got != x.want {
			t.Errorf("%+v: CI is %q", x, got)
		}
		Restore()
		if got, ok := os.LookupEnv(variable); got != x.before || ok != x.exists {
			t.Errorf("%+v: CI is %q, %t afterwards", x, got, ok)
		}
	}
}
