package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"github.com/spf13/viper"
	"golang.org/x/term"

	"github.com/ocslab/ocslab/drivers"
	"github.com/ocslab/ocslab/examples"
	"github.com/ocslab/ocslab/experiment"
	"github.com/ocslab/ocslab/internal/secret"
	"github.com/ocslab/ocslab/internal/statedir"
	"github.com/ocslab/ocslab/lab"
	"github.com/ocslab/ocslab/lab/history"
)

// app is what the subcommands share.
type app struct {
	out, err io.Writer
	set      settings
	started  bool // the command line was understood
	mute     bool // something could not be written, and that was said
	offer    bool // other processes may use the emulated switches of this one

	// Opened when first asked for.
	log   *history.Log
	bench *lab.Lab
}

// settings come from flags, OCSLAB_* in the environment, ocslab.yaml and the
// defaults, in this order. Names of switches and port maps never do: viper
// folds case and splits at dots.
type settings struct {
	Lab      string
	Emulated bool
	JSON     bool
	Password string // a reference
	Timeout  time.Duration
	StateDir string
	Mode     string
	Verify   lab.Verify
	Recheck  time.Duration
	Trace    bool
}

func (a *app) command() *cobra.Command {
	root := &cobra.Command{
		Use:   "ocslab",
		Short: "Drive, emulate and measure optical circuit switches",
		Long: `ocslab is lab tooling for optical circuit switches: it moves light, verifies
that it moved, and measures when each layer came back.

A SWITCH is the name of a switch in the lab file (--lab), or a URL such as
tl1://admin@192.0.2.10:3082. Start with "ocslab demo".`,
		SilenceUsage:  true,
		SilenceErrors: true,
		Args:          cobra.NoArgs,
		RunE:          func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	f := root.PersistentFlags()
	f.String("lab", "", "lab `FILE`")
	f.Bool("emulated", false, "use emulated switches in place of the lab's; without --lab, of the built-in testbed")
	f.Bool("json", false, "one JSON object per line on stdout")
	f.String("password", "", "password of the switches, as a `REF`erence: env:NAME or file:PATH")
	f.Duration("timeout", 10*time.Second, "how long one reply of a switch may take")
	f.String("state-dir", "", "where history and emulated switches are kept (`DIR`; default $XDG_STATE_HOME/ocslab)")
	f.Bool("trace", false, "show what is sent to and received from switches on stderr, secrets masked")
	f.String("config", "", "settings `FILE` (default ocslab.yaml here or in the user's configuration directory)")
	narrow(root)
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return usageError{err} })
	root.PersistentPreRunE = func(cmd *cobra.Command, _ []string) error {
		a.started = true
		return a.settle(cmd)
	}
	root.AddCommand(
		a.demoCommand(), a.measureCommand(), a.watchCommand(), a.emulateCommand(), a.emulatorCommand(), a.showCommand(),
		a.connectCommand(), a.disconnectCommand(), a.linkCommand(), a.unlinkCommand(),
		a.planCommand(), a.applyCommand(),
		a.undoCommand(), a.historyCommand(), a.snapshotCommand(), a.restoreCommand(), a.panicCommand(), a.wiringCommand(),
		a.runCommand(), a.runsCommand(), a.reportCommand(), a.figureCommand(),
		a.orchestrateCommand(), a.replayJobCommand(), a.auditCommand(), a.tracesCommand(), a.adviseCommand(), a.topologyCommand(),
		a.conformCommand(), a.calibrateCommand(), a.restartCommand(), a.shuttersCommand(), a.notesCommand(), a.tuiCommand(), a.versionCommand(),
	)
	completeChoices(root)
	for _, c := range root.Commands() {
		if strings.Contains(c.Use, "SWITCH") {
			c.ValidArgsFunction = a.completeSwitch
		}
		if c.Args != nil {
			check := c.Args
			c.Args = func(cmd *cobra.Command, args []string) error {
				if err := check(cmd, args); err != nil {
					return usagef("%w; usage: %s", err, cmd.UseLine())
				}
				return nil
			}
		}
		if c.RunE != nil {
			run := c.RunE
			c.RunE = func(cmd *cobra.Command, args []string) error {
				err := run(cmd, args)
				return errors.Join(err, a.close(cmd.Context()))
			}
		}
	}
	return root
}

// completeChoices completes flags whose values are named in their usage: `a|b|c`.
func completeChoices(c *cobra.Command) {
	c.Flags().VisitAll(func(f *pflag.Flag) {
		name, _ := pflag.UnquoteUsage(f)
		if choices := strings.Split(name, "|"); len(choices) > 1 {
			// The only error is that it is done already.
			_ = c.RegisterFlagCompletionFunc(f.Name, cobra.FixedCompletions(choices, cobra.ShellCompDirectiveNoFileComp))
		}
	})
	for _, sub := range c.Commands() {
		completeChoices(sub)
	}
}

// completeSwitch completes the first argument with the switches of the lab.
func (a *app) completeSwitch(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 || a.settle(cmd) != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	f, err := a.file()
	if err != nil || f == nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	var names []string
	for _, s := range f.Switches {
		names = append(names, s.Name)
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}

// keys are the settings a file may hold.
var keys = []string{"lab", "emulated", "json", "password", "timeout", "state-dir", "mode", "verify", "recheck", "busy-limit", "trace"}

// settingsFile returns the path of ocslab.yaml, "" if there is none. We look
// ourselves, since viper would take the program for it: a file named ocslab.
func settingsFile() string {
	paths := []string{"ocslab.yaml"}
	if dir, err := os.UserConfigDir(); err == nil {
		paths = append(paths, filepath.Join(dir, "ocslab", "ocslab.yaml"))
	}
	for _, p := range paths {
		if info, err := os.Stat(p); err == nil && info.Mode().IsRegular() {
			return p
		}
	}
	return ""
}

// settle reads the settings.
func (a *app) settle(cmd *cobra.Command) error {
	v := viper.NewWithOptions(viper.KeyDelimiter("::"))
	v.SetEnvPrefix("OCSLAB")
	v.SetEnvKeyReplacer(strings.NewReplacer("-", "_"))
	for _, k := range keys {
		if k == "password" {
			continue // OCSLAB_PASSWORD is the password itself, not a reference
		}
		if err := v.BindEnv(k); err != nil {
			return err
		}
	}
	path, err := cmd.Flags().GetString("config")
	if err != nil {
		return err
	}
	if path == "" {
		path = settingsFile()
	}
	if path != "" {
		v.SetConfigFile(path)
		v.SetConfigType("yaml")
		if err := v.ReadInConfig(); err != nil {
			return usagef("settings: %w", err)
		}
	}
	for _, k := range v.AllKeys() {
		if v.InConfig(k) && !slices.Contains(keys, k) {
			return usagef("settings file %s: unknown key %q: want some of %s", v.ConfigFileUsed(), k, strings.Join(keys, ", "))
		}
	}
	var bindErr error
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if slices.Contains(keys, f.Name) && (f.Name != "verify" || f.Annotations[ofGate] != nil) { // rails have a flag of that name
			bindErr = errors.Join(bindErr, v.BindPFlag(f.Name, f))
		}
	})
	if bindErr != nil {
		return bindErr
	}
	timeout, err := time.ParseDuration(v.GetString("timeout"))
	if err != nil || timeout <= 0 {
		return usagef("timeout %q: want a duration above zero with its unit, such as 10s", v.GetString("timeout"))
	}
	verify, recheck := lab.VerifyLight, time.Second
	if text := v.GetString("verify"); text != "" {
		if verify, err = lab.ParseVerify(text); err != nil {
			return usageError{err}
		}
	}
	if text := v.GetString("recheck"); text != "" {
		if recheck, err = time.ParseDuration(text); err != nil || recheck < 0 {
			return usagef("recheck %q: want a duration with its unit, such as 1s", text)
		}
	}
	limit := experiment.TooLate
	if text := v.GetString("busy-limit"); text != "" {
		if limit, err = time.ParseDuration(text); err != nil || limit < 0 {
			return usagef("busy-limit %q: want a duration with its unit, such as 100ms, or 0s", text)
		}
	}
	experiment.SetTooLate(limit)
	a.set = settings{
		Verify: verify, Recheck: recheck,
		Lab: v.GetString("lab"), Emulated: v.GetBool("emulated"), JSON: v.GetBool("json"),
		Password: v.GetString("password"), Timeout: timeout,
		StateDir: v.GetString("state-dir"), Mode: v.GetString("mode"), Trace: v.GetBool("trace"),
	}
	return nil
}

// password returns the password for switches that have none in the lab file.
func (a *app) password() (secret.Secret, error) {
	if a.set.Password == "" {
		if p := os.Getenv("OCSLAB_PASSWORD"); p != "" {
			return secret.New(p), nil
		}
		return secret.Secret{}, nil
	}
	ref, err := secret.ParseRef(a.set.Password)
	if err != nil {
		return secret.Secret{}, usageError{err}
	}
	p, err := ref.Resolve(".")
	if err != nil {
		return secret.Secret{}, usageError{err}
	}
	return p, nil
}

// file returns the lab file: that of --lab or, with --emulated alone, the
// built-in testbed. It is nil when there is none.
func (a *app) file() (*lab.File, error) {
	switch {
	case a.set.Lab != "":
		f, err := lab.Load(a.set.Lab)
		if err != nil {
			return nil, usageError{err}
		}
		return f, nil
	case a.set.Emulated:
		f, err := lab.Parse("opus-testbed.yaml", examples.OpusTestbed)
		if err == nil {
			f.Path = "" // it is no file: the same lab wherever we are
		}
		return f, err
	}
	return nil, nil
}

// lab opens the lab; nil when there is no lab file.
func (a *app) lab() (*lab.Lab, error) {
	l, err := a.switches()
	if err != nil || l.File == nil {
		return nil, err
	}
	return l, nil
}

// switches opens the lab or, without a lab file, one that has only the switches that URLs lead to.
func (a *app) switches() (*lab.Lab, error) {
	if a.bench != nil {
		return a.bench, nil
	}
	f, err := a.file()
	if err != nil {
		return nil, err
	}
	opt, err := a.labOptions()
	if err != nil {
		return nil, err
	}
	opt.Join, opt.Offer = true, a.offer
	a.bench = lab.New(f, opt)
	return a.bench, nil
}

// labOptions returns how the switches of a lab are opened.
func (a *app) labOptions() (opt lab.Options, err error) {
	opt = lab.Options{Emulated: a.set.Emulated, Timeout: a.set.Timeout, Trace: a.tracer(), Command: commandLine(), Verify: a.set.Verify}
	if opt.Password, err = a.password(); err != nil {
		return opt, err
	}
	opt.StateDir, err = a.stateDir()
	return opt, err
}

func (a *app) tracer() func(name string, sent bool, p []byte) {
	if !a.set.Trace {
		return nil
	}
	return func(name string, sent bool, p []byte) {
		way := "<"
		if sent {
			way = ">"
		}
		fmt.Fprintf(a.err, "%s %s %s %q\n", time.Now().Format("15:04:05.000000"), name, way, p)
	}
}

// open opens a SWITCH: a name in the lab, or a URL.
func (a *app) open(ctx context.Context, name string) (*lab.Opened, error) {
	l, err := a.switches()
	if err != nil {
		return nil, err
	}
	if l.File == nil && !drivers.IsURL(name) {
		return nil, usagef("switch %q: a name needs --lab FILE; or give a URL such as tl1://admin@192.0.2.10:3082", name)
	}
	return l.Open(ctx, name)
}

// names returns the switches a command is about: those named, or all of the
// lab.
func (a *app) names(args []string) ([]string, error) {
	if len(args) > 0 {
		return args, nil
	}
	l, err := a.lab()
	if err != nil {
		return nil, err
	}
	if l == nil {
		return nil, usagef("name a switch by URL, or give --lab FILE")
	}
	var names []string
	for _, s := range l.File.Switches {
		names = append(names, s.Name)
	}
	return names, nil
}

func (a *app) stateDir() (string, error) {
	return statedir.Path(a.set.StateDir)
}

// history opens the record of changes.
func (a *app) history() (*history.Log, error) {
	if a.log != nil {
		return a.log, nil
	}
	dir, err := a.stateDir()
	if err != nil {
		return nil, err
	}
	a.log, err = history.Open(dir)
	return a.log, err
}

// close reads once more what was changed, and ends all sessions.
func (a *app) close(ctx context.Context) error {
	var errs []error
	if a.bench != nil {
		errs = append(errs, a.bench.Gate().Recheck(ctx, a.set.Recheck), a.bench.Close())
	}
	a.bench = nil
	return errors.Join(errs...)
}

// json writes one line.
func (a *app) json(v any) {
	enc := json.NewEncoder(a.out)
	enc.SetEscapeHTML(false) // "1>33" stays readable
	a.wrote(enc.Encode(v))
}

// wrote says once that something could not be written, such as to a disk that is full.
func (a *app) wrote(err error) {
	if err != nil && !a.mute {
		a.mute = true
		fmt.Fprintf(a.err, "ocslab: cannot write: %v\n", err)
	}
}

// printf writes text for people, nothing with --json.
func (a *app) printf(format string, args ...any) {
	if !a.set.JSON {
		_, err := fmt.Fprintf(a.out, format, args...)
		a.wrote(err)
	}
}

// progress shows how far a long command is on a terminal, and nothing
// elsewhere. Call done before anything else is written.
type progress struct {
	w    io.Writer
	last int
}

func (a *app) progress() *progress {
	if f, ok := a.err.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		return &progress{w: a.err}
	}
	return &progress{}
}

func (p *progress) set(format string, args ...any) {
	if p.w == nil {
		return
	}
	s := fmt.Sprintf(format, args...)
	fmt.Fprintf(p.w, "\r%s%s", s, strings.Repeat(" ", max(p.last-len(s), 0)))
	p.last = len(s)
}

func (p *progress) done() {
	if p.w != nil && p.last > 0 {
		fmt.Fprintf(p.w, "\r%s\r", strings.Repeat(" ", p.last))
		p.last = 0
	}
}
