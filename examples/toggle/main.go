// Command toggle moves a lab, prints when light, links and traffic are back, and puts it back: toggle [-emulated] LAB CONFIGURATION
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"os"
	"os/signal"
	"strings"

	"github.com/ocslab/ocslab/experiment"
	"github.com/ocslab/ocslab/lab"
	"github.com/ocslab/ocslab/ocs"
	"github.com/ocslab/ocslab/timeline"
)

func main() {
	emulated := flag.Bool("emulated", false, "emulate the lab")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	options := lab.Options{Emulated: *emulated, StateDir: os.ExpandEnv("$HOME/.local/state/ocslab")} // leases are there, too
	if err := toggle(ctx, os.Stdout, flag.Arg(0), flag.Arg(1), options); err != nil {
		log.Fatal(err)
	}
}

func toggle(ctx context.Context, w io.Writer, path, to string, opt lab.Options) error {
	file, err := lab.Load(path)
	if err != nil {
		return err
	}
	want, err := file.Config(to) // circuits, by switch
	if err != nil {
		return err
	}
	opt.Command = "toggle " + to // for the history
	l, maps := lab.New(file, opt), []map[string]ocs.Map{want}
	defer l.Close()
	bed, err := experiment.OpenTestbed(ctx, l, experiment.TestbedOptions{Maps: maps})
	if err != nil {
		return err
	}
	defer bed.Close()
	mover := experiment.NewMover(ocs.Safe, maps) // Safe: circuits of others stay
	found, err := mover.TakeOver(ctx, bed)
	if err != nil {
		return err
	}
	move, err := bed.Bench.Move(ctx, 1, want, ocs.Safe)
	lines := timeline.Waterfall{}.Lines(timeline.Summarize(move.Marks, timeline.Options{Expected: move.Expected}))
	fmt.Fprintln(w, strings.Join(lines, "\n"))
	return errors.Join(err, mover.Leave(context.WithoutCancel(ctx), l, found)) // also after Ctrl-C
}
