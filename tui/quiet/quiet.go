// Package quiet keeps the program from asking the terminal for its colours before anybody
// wants to know.
//
// Package bubbletea does that in its init: every command that is linked with it, not only the UI, writes a
// query to the terminal, and waits up to five seconds where none answers. What it calls
// does not ask on what it takes for no terminal, and goes by the variable CI for that. So this
// package, which depends on nothing but os and is therefore initialized long before, sets CI,
// and [Restore] puts it back.
package quiet

import "os"

const variable = "CI"

// set says that init has set the variable.
var set bool

func init() {
	if _, ok := os.LookupEnv(variable); !ok {
		set = os.Setenv(variable, "1") == nil
	}
}

// Restore puts the environment back as it was. It is for the init of a package that
// imports bubbletea, and so comes after it.
func Restore() {
	if set {
		_ = os.Unsetenv(variable)
		set = false
	}
}
