package main

import (
	"errors"
	"fmt"
	"os"
	"runtime"

	"github.com/ocslab/ocslab/emulator/fabric"
)

// namespaceMark is the variable that marks the program that runs in a user
// namespace of its own.
const namespaceMark = "OCSLAB_USERNS"

// enter makes sure that emulated hosts can be network namespaces, if that is to be
// had here at all. An ordinary user gets a user namespace, in which the program runs
// once more; what that came to is then returned, and done is true.
func enter() (done bool, err error) {
	code, done, err := fabric.Reexec(namespaceMark)
	if done && err == nil && code != 0 {
		err = childError(code)
	}
	return done, err
}

// moreProcessors lets more goroutines run at once than there are processors. The threads
// that sweep counters and send packets keep theirs in short system calls, and Go would
// let everything else wait for its turn of 10 ms; the kernel shares more evenly.
func moreProcessors() {
	if os.Getenv("GOMAXPROCS") == "" {
		runtime.GOMAXPROCS(runtime.GOMAXPROCS(0) + 4)
	}
}

// inUserNamespace reports whether this is that program.
func inUserNamespace() bool { return os.Getenv(namespaceMark) != "" }

// childError is the exit code of the program that ran in our place, and that has
// told its errors itself.
type childError int

func (e childError) Error() string { return fmt.Sprintf("exit code %d", int(e)) }

// rungsNotHere says why better rungs than r are not to be had.
func rungsNotHere(r fabric.Rung) error {
	var errs []error
	for _, x := range fabric.Rungs() {
		if x.Rung < r && x.Err != nil {
			errs = append(errs, x.Err)
		}
	}
	return errors.Join(errs...)
}
