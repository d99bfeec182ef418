package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"ocslab": main})
}

// Scripts run the real program; each has a state directory and a home of its
// own. Commands beside those of testscript:
//
//	emulate NAME [ARG...]   start "ocslab emulate ARG...", set $NAME to its URL for TL1,
//	                        $NAME_ADDR to its address, $NAME_SCPI, $NAME_TL1_SSH and so on
//	                        to its other URLs, each with ..._ADDR, $NAME_HOSTKEY to its key,
//	                        and, with --fabric, $NAME_LAB to the lab file that leads to it
//	start NAME ARG...       start "ocslab ARG..." with its output in the file NAME
//	end NAME                interrupt it, and want exit code 0
//	killed TEXT ARG...      run "ocslab ARG..." and kill -9 it once a line of its
//	                        stderr holds TEXT (with --trace: what is on the wire)
//	peer NAME BEHAVIOUR     start a TCP server that misbehaves and set $NAME to its URL
//	exitcode N ARG...       run "ocslab ARG..." and want exit code N
//	                        and leave its output in the files stdout and stderr
//	exitof N PROGRAM ARG... run any program as exec does and want exit code N;
//	                        N may be several, as in 0|5: what is judged by time
//	                        may be judged otherwise on a busy machine
//	json [KEY=VALUE...]     want a line of the file stdout that is JSON with these
func TestScript(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		RequireExplicitExec: true,
		Setup: func(env *testscript.Env) error {
			env.Setenv("OCSLAB_STATE_DIR", filepath.Join(env.WorkDir, "state"))
			env.Setenv("OCSLAB_RECHECK", "0s")    // one script is about it; the others would only wait
			env.Setenv("OCSLAB_BUSY_LIMIT", "0s") // what is printed is tested, on however busy a machine
			env.Setenv("HOME", env.WorkDir)
			env.Setenv("XDG_CONFIG_HOME", filepath.Join(env.WorkDir, "config"))
			examples, err := filepath.Abs("../../examples")
			if err != nil {
				return err
			}
			env.Setenv("EXAMPLES", examples)
			env.Values["emulated"] = map[string]*exec.Cmd{}
			return nil
		},
		Condition: func(cond string) (bool, error) {
			if cond == "root" {
				return os.Geteuid() == 0, nil
			}
			return false, fmt.Errorf("unknown condition %q", cond)
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"emulate": emulate, "start": start, "end": end, "killed": killed, "peer": peer, "exitcode": exitcode, "exitof": exitof, "json": wantJSON,
		},
	})
}

// command is the program under test in the environment of the script.
func command(ts *testscript.TestScript, args []string) *exec.Cmd {
	path, err := exec.LookPath("ocslab")
	ts.Check(err)
	cmd := exec.Command(path, args...)
	cmd.Dir = ts.Getenv("WORK")
	for _, k := range []string{"OCSLAB_STATE_DIR", "HOME", "XDG_CONFIG_HOME", "PATH", "OCSLAB_PASSWORD", "OCSLAB_TIMEOUT", "OCSLAB_JSON", "OCSLAB_MODE", "OCSLAB_RECHECK", "OCSLAB_BUSY_LIMIT", "RAIL0_PASSWORD"} {
		if v := ts.Getenv(k); v != "" {
			cmd.Env = append(cmd.Env, k+"="+v)
		}
	}
	return cmd
}

func emulate(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 1 {
		ts.Fatalf("usage: emulate NAME [ARG...]")
	}
	cmd := command(ts, append([]string{"emulate", "--json"}, args[1:]...))
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	ts.Check(err)
	ts.Check(cmd.Start())
	ts.Defer(func() {
		cmd.Process.Kill()
		cmd.Wait()
	})
	last := "ready"
	if slices.Contains(args, "--fabric") {
		last = "lab"
	}
	lines := bufio.NewScanner(out)
	for kind := ""; kind != last; {
		if !lines.Scan() {
			ts.Fatalf("emulate ended before it was ready")
		}
		var line struct {
			readyLine
			Path string
		}
		ts.Check(json.Unmarshal(lines.Bytes(), &line))
		switch kind = line.Kind; kind {
		case "ready":
			ts.Setenv(args[0], line.URLs["tl1"])
			for at, url := range line.URLs {
				name := args[0] + "_" + strings.ToUpper(strings.ReplaceAll(string(at), "+", "_"))
				ts.Setenv(name, url)
				ts.Setenv(name+"_ADDR", line.Endpoints[at])
			}
			ts.Setenv(args[0]+"_ADDR", line.Endpoints["tl1"])
			ts.Setenv(args[0]+"_HOSTKEY", line.HostKey)
		case "lab":
			ts.Setenv(args[0]+"_LAB", line.Path)
		}
	}
	ts.Value("emulated").(map[string]*exec.Cmd)[args[0]] = cmd
}

func start(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: start NAME ARG...")
	}
	cmd := command(ts, args[1:])
	out, err := os.Create(ts.MkAbs(args[0]))
	ts.Check(err)
	defer out.Close()
	cmd.Stdout, cmd.Stderr = out, os.Stderr
	ts.Check(cmd.Start())
	ts.Defer(func() {
		cmd.Process.Kill()
		cmd.Wait()
	})
	ts.Value("emulated").(map[string]*exec.Cmd)[args[0]] = cmd
	for { // until it has begun
		if info, err := os.Stat(out.Name()); err != nil || info.Size() > 0 {
			ts.Check(err)
			return
		}
		time.Sleep(5 * time.Millisecond)
	}
}

func end(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: end NAME")
	}
	cmd := ts.Value("emulated").(map[string]*exec.Cmd)[args[0]]
	ts.Check(cmd.Process.Signal(os.Interrupt))
	ts.Check(cmd.Wait())
}

func killed(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: killed TEXT ARG...")
	}
	cmd := command(ts, args[1:])
	stderr, err := cmd.StderrPipe()
	ts.Check(err)
	ts.Check(cmd.Start())
	in := bufio.NewScanner(stderr)
	for in.Scan() && !strings.Contains(in.Text(), args[0]) {
	}
	ts.Check(cmd.Process.Kill())
	io.Copy(io.Discard, stderr)
	if err := cmd.Wait(); err == nil {
		ts.Fatalf("it was not killed")
	}
}

func exitcode(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exitcode N ARG...")
	}
	want := exitCodes(ts, args[0])
	cmd := command(ts, args[1:])
	var stdout, stderr strings.Builder
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	got := 0
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		got = exit.ExitCode()
	} else {
		ts.Check(err)
	}
	ts.Check(os.WriteFile(ts.MkAbs("stdout"), []byte(stdout.String()), 0o600))
	ts.Check(os.WriteFile(ts.MkAbs("stderr"), []byte(stderr.String()), 0o600))
	if !slices.Contains(want, got) {
		ts.Fatalf("exit code %d, want %s\nstdout: %s\nstderr: %s", got, args[0], stdout.String(), stderr.String())
	}
	if strings.Contains(stderr.String(), "goroutine ") || got != 0 && strings.Count(stderr.String(), "\n") < 1 {
		ts.Fatalf("want a sentence on stderr, got %q", stderr.String())
	}
}

// exitCodes reads the exit codes that a script wants: one, or any of several, as in 0|5.
func exitCodes(ts *testscript.TestScript, text string) (codes []int) {
	for word := range strings.SplitSeq(text, "|") {
		code, err := strconv.Atoi(word)
		ts.Check(err)
		codes = append(codes, code)
	}
	return codes
}

// wantJSON looks for a line of the file stdout with these keys; ! wants none.
func wantJSON(ts *testscript.TestScript, neg bool, args []string) {
	data, err := os.ReadFile(ts.MkAbs("stdout")) // ts.ReadFile would give that of exec
	ts.Check(err)
	text := string(data)
	found := false
	for line := range strings.Lines(text) {
		var obj map[string]any
		if err := json.Unmarshal([]byte(line), &obj); err != nil {
			ts.Fatalf("not JSON: %q: %v", line, err)
		}
		all := true
		for _, a := range args {
			key, want, _ := strings.Cut(a, "=")
			got, ok := obj[key]
			all = all && ok && fmt.Sprint(got) == want
		}
		found = found || all
	}
	if found == neg {
		ts.Fatalf("line with %q found=%v in\n%s", args, found, text)
	}
}

// peer starts a server that accepts a login and then does as told with
// everything else.
func peer(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: peer NAME BEHAVIOUR")
	}
	ctag := func(cmd string) string {
		if f := strings.Split(cmd, ":"); len(f) > 3 {
			return f[3]
		}
		return "0"
	}
	reply := func(tag, status, rest string) string {
		return "\r\n\n   PEER 26-11-21 00:00:00\r\nM  " + tag + " " + status + "\r\n" + rest + ";"
	}
	behaviours := map[string]func(c net.Conn, cmd string){
		"deny": func(c net.Conn, cmd string) {
			io.WriteString(c, reply(ctag(cmd), "DENY", "   SROF\r\n   /* the matrix is on fire */\r\n"))
		},
		"hang":     func(net.Conn, string) {},
		"close":    func(c net.Conn, _ string) { c.Close() },
		"midreply": func(c net.Conn, cmd string) { io.WriteString(c, reply(ctag(cmd), "COMPLD", "")[:30]); c.Close() },
		"foreign":  func(c net.Conn, _ string) { io.WriteString(c, reply("4711", "COMPLD", "   \"1,33\"\r\n")) },
		"flood": func(c net.Conn, cmd string) {
			io.WriteString(c, strings.TrimSuffix(reply(ctag(cmd), "COMPLD", ""), ";"))
			for range 10 << 10 {
				if _, err := io.WriteString(c, strings.Repeat("   \"0123456789\"\r\n", 64)); err != nil {
					return
				}
			}
		},
		"garbage": func(c net.Conn, _ string) { io.WriteString(c, "\x00\xff\xfe;;;;\r\n<html>\r\n;") },
	}
	do, ok := behaviours[args[1]]
	if !ok {
		ts.Fatalf("no behaviour %q", args[1])
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	ts.Check(err)
	var conns sync.WaitGroup
	ts.Defer(func() { l.Close(); conns.Wait() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			conns.Go(func() {
				defer c.Close()
				c.SetDeadline(time.Now().Add(30 * time.Second))
				in := bufio.NewReader(c)
				for {
					cmd, err := in.ReadString(';')
					if err != nil {
						return
					}
					if strings.Contains(cmd, "ACT-USER") || strings.Contains(cmd, "ARC") {
						io.WriteString(c, reply(ctag(cmd), "COMPLD", ""))
						continue
					}
					do(c, cmd)
				}
			})
		}
	}()
	ts.Setenv(args[0], "tl1://admin@"+l.Addr().String())
}
