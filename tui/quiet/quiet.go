// Package quiet keeps the program from asking the terminal for its colours before anybody
// wants to know.
//
// Package bubbletea does that in its init: every command that is linked with it, not only the UI, writes a
// query to the terminal, and waits up to five seconds where none answers. What it calls
// does not ask on what it takes for no terminal, and goes by the variable CI for that. So this
// package sets CI, and [Restore] puts it back.
//
// It has to be initialized before bubbletea, which the language promises: of the packages whose
// imports are initialized, the first by import path is next. This one imports os only, so it
// comes before os/signal, which bubbletea imports. To import anything else here would break that.
package quiet

import "os"

const variable = "CI"

var (
	set     bool   // init has set the variable
	before  string // its value then
	existed bool   // it had one, which may be ""
)

func init() { hush() }

func hush() {
	if before, existed = os.LookupEnv(variable); before == "" {
		set = os.Setenv(variable, "1") == nil
	}
}

// Restore puts the environment back as it was. It is for the init of a package that
// imports bubbletea, and so comes after it.
func Restore() {
	if !set {
		return
	}
	set = false
	if existed {
		_ = os.Setenv(variable, before)
		return
	}
	_ = os.Unsetenv(variable)
}
