// Command ocslab drives, emulates and measures optical circuit switches.
//
//	ocslab demo                        an emulated testbed, measured layer by layer
//	ocslab connect rail0 1>33,2>34     move circuits, read back and verified
//	ocslab emulate --model NAME        serve an emulated switch
//
// See "ocslab help" for all commands.
//
// # Exit codes
//
//	0    done
//	1    failed
//	2    usage: the command line or an input file is wrong; nothing was sent
//	3    refused: a port is busy, protected or leased to somebody else
//	4    device or wire error
//	5    verification failed: the device does not hold what was asked for
//	130  interrupted
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
)

func main() { os.Exit(run(os.Args[1:], os.Stdin, os.Stdout, os.Stderr)) }

// run is the program: it returns the exit code.
func run(args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	// A second signal ends the program at once.
	context.AfterFunc(ctx, stop)

	a := &app{out: stdout, err: stderr}
	root := a.command()
	root.SetArgs(args)
	root.SetIn(stdin)
	root.SetOut(stdout)
	root.SetErr(stderr)
	err := root.ExecuteContext(ctx)
	var child childError
	switch {
	case errors.As(err, &child):
		return int(child)
	case err == nil:
	case !a.started: // cobra did not like the command line
		err = usageError{err}
	case ctx.Err() != nil && !errors.As(err, new(ended)):
		err = interrupted{err}
	}
	code := exitCode(err)
	if err != nil {
		a.fail(err, code)
	}
	if code == exitDone && a.mute {
		return exitFailed
	}
	return code
}

// ended is what a command that runs until it is interrupted has found out. The signal is its regular end, and no error.
type ended struct{ error }

func (e ended) Unwrap() error { return e.error }

// interrupted is what a command came to because of a signal.
type interrupted struct{ err error }

func (i interrupted) Error() string { return fmt.Sprintf("interrupted: %v", i.err) }
func (i interrupted) Unwrap() error { return i.err }
