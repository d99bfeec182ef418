package check_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"testing/iotest"

	gocmp "github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/ocslab/ocslab/orchestrator/check"
)

const (
	opsHeader   = `{"kind":"operations","version":1}` + "\n"
	truthHeader = `{"kind":"truth","version":1}` + "\n"
	opLine      = `{"rail":"rail0","switch":"s","rank":3,"step":2,"group":"dp/1","op":7,"way":0,"uses":"1>9,2>10","begin_ns":5,"end_ns":9,"bytes":100,"lost":0}` + "\n"
	changeLine  = `{"change":{"switch":"s","at_ns":100,"remove":"1>9","add":""}}` + "\n"
	lightLine   = `{"light":{"switch":"s","ingress":1,"egress":9,"from_ns":0,"until_ns":9223372036854775807}}` + "\n"
)

// Ensure the logs are written to the byte as the documentation has them.
func TestWrite(t *testing.T) {
	var b bytes.Buffer
	if err := check.WriteOps(&b, []check.Op{op("1>9,2>10", 5, 9)}); err != nil {
		t.Fatal(err)
	}
	if diff := gocmp.Diff(opsHeader+opLine, b.String()); diff != "" {
		t.Errorf("operations (-want +got):\n%s", diff)
	}
	b.Reset()
	truth := check.Truth{Changes: []check.Change{change(100, "1>9", "")}, Lights: []check.Light{light("1>9", 0, never)}}
	if err := check.WriteTruth(&b, truth); err != nil {
		t.Fatal(err)
	}
	if diff := gocmp.Diff(truthHeader+changeLine+lightLine, b.String()); diff != "" {
		t.Errorf("truth (-want +got):\n%s", diff)
	}
}

func TestRead_Errors(t *testing.T) {
	ops := func(s string) error { _, err := check.ReadOps(strings.NewReader(s)); return err }
	truth := func(s string) error { _, err := check.ReadTruth(strings.NewReader(s)); return err }
	tests := []struct {
		name string
		err  error
		want string
	}{
		{"empty", ops(""), `line 1: a log of kind "operations" begins with a header, and this is empty`},
		{"no header", ops(opLine), `line 1: json: unknown field "rail"`},
		{"other log", ops(truthHeader), `line 1: this is a log of kind "truth", and "operations" is wanted`},
		{"newer", truth(`{"kind":"truth","version":2}` + "\n"), `line 1: the log has version 2, and this program knows 1`},
		{"torn", ops(opsHeader + opLine + opLine[:40]), `line 3: the line has no end`},
		{"torn, but whole", ops(opsHeader + strings.TrimSpace(opLine)), `line 2: the line has no end`},
		{"unknown key", ops(opsHeader + strings.Replace(opLine, "lost", "lots", 1)), `line 2: json: unknown field "lots"`},
		{"two", ops(opsHeader + strings.TrimSpace(opLine) + opLine), `line 2: there is more text after the object`},
		{"nothing", ops(opsHeader + "\n"), `line 2: EOF`},
		{"reversed", ops(opsHeader + strings.Replace(opLine, `"end_ns":9`, `"end_ns":4`, 1)), `line 2: the operation ends at 4, before it begins at 5`},
		{"no map", ops(opsHeader + strings.Replace(opLine, `1>9,`, `1>10,`, 1)), `line 2: `},
		{"negative", ops(opsHeader + strings.Replace(opLine, `"lost":0`, `"lost":-1`, 1)), `line 2: 100 bytes, -1 lost: want none below 0`},
		{"negative rank", ops(opsHeader + strings.Replace(opLine, `"rank":3`, `"rank":-3`, 1)), `line 2: rank -3, step 2 and way 0: want none below 0`},
		{"no switch", ops(opsHeader + strings.Replace(opLine, `"switch":"s"`, `"switch":""`, 1)), `line 2: an operation that uses circuits needs a switch`},
		{"no group", ops(opsHeader + strings.Replace(opLine, `"dp/1"`, `""`, 1)), `line 2: an operation needs a group`},
		{"long", ops(opsHeader + strings.Repeat(" ", check.MaxLine) + opLine), `line 2: it is longer than 1048576 bytes`},
		{"neither", truth(truthHeader + "{}\n"), `line 2: want one of "change" and "light"`},
		{"both", truth(truthHeader + strings.TrimSuffix(changeLine, "}\n") + "," + lightLine[1:]), `line 2: want one of "change" and "light"`},
		{"port", truth(truthHeader + strings.Replace(lightLine, `"egress":9`, `"egress":65536`, 1)), `line 2: light of 1>65536: ports are 1 to 65535`},
		{"light reversed", truth(truthHeader + strings.Replace(lightLine, "9223372036854775807", "-1", 1)), `line 2: the light of 1>9 goes at -1, before it comes at 0`},
		{"light of none", truth(truthHeader + strings.Replace(lightLine, `"s"`, `""`, 1)), `line 2: the light of 1>9 needs a switch`},
		{"change of none", truth(truthHeader + strings.Replace(changeLine, `"s"`, `""`, 1)), `line 2: the change - 1>9 needs a switch`},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			var line *check.LineError
			if !errors.As(test.err, &line) || !strings.HasPrefix(fmt.Sprint(test.err), test.want) {
				t.Errorf("got %v, want %s", test.err, test.want)
			}
			if got, want := errors.Is(test.err, check.ErrTorn), strings.HasPrefix(test.name, "torn"); got != want {
				t.Errorf("torn=%v, want %v", got, want)
			}
		})
	}
	read, err := check.ReadOps(strings.NewReader(opsHeader + opLine + opLine[:40]))
	if len(read) != 1 || err == nil {
		t.Errorf("got %d operations and %v, want that of before the torn line", len(read), err)
	}
	if _, err := check.ReadOps(iotest.ErrReader(io.ErrClosedPipe)); !errors.Is(err, io.ErrClosedPipe) {
		t.Errorf("got %v, want the error of the reader", err)
	}
}

type brokenWriter struct{}

func (brokenWriter) Write([]byte) (int, error) { return 0, io.ErrShortWrite }

// Ensure a log of many ranks is whole lines, and that its errors are told at the end.
func TestOpLog(t *testing.T) {
	var b bytes.Buffer
	l := check.NewOpLog(&b)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 100 {
				l.Add(op("1>9", 5, 9))
			}
		})
	}
	wg.Wait()
	if err := l.Flush(); err != nil {
		t.Fatal(err)
	}
	ops, err := check.ReadOps(iotest.OneByteReader(&b))
	if len(ops) != 800 || err != nil {
		t.Errorf("read %d operations, %v, want 800", len(ops), err)
	}
	if err := check.WriteOps(brokenWriter{}, ops); !errors.Is(err, io.ErrShortWrite) {
		t.Errorf("got %v, want the error of the writer", err)
	}
	if err := check.WriteTruth(brokenWriter{}, check.Truth{}); !errors.Is(err, io.ErrShortWrite) {
		t.Errorf("got %v, want the error of the writer", err)
	}
}

// Ensure what is written is what is read.
func TestRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		truth, ops := drawTruth(t, "s"), drawOps(t)
		var b bytes.Buffer
		if err := check.WriteTruth(&b, truth); err != nil {
			t.Fatal(err)
		}
		if back, err := check.ReadTruth(&b); err != nil || !gocmp.Equal(truth, back) {
			t.Fatalf("%v\n%s", err, gocmp.Diff(truth, back))
		}
		if err := check.WriteOps(&b, ops); err != nil {
			t.Fatal(err)
		}
		if back, err := check.ReadOps(&b); err != nil || !gocmp.Equal(ops, back) {
			t.Fatalf("%v\n%s", err, gocmp.Diff(ops, back))
		}
	})
}

// FuzzRead checks that no text makes the readers or the checker panic, and that what is read is written and read again
// as the same.
func FuzzRead(f *testing.F) {
	f.Add([]byte(opsHeader+opLine), []byte(truthHeader+changeLine+lightLine))
	f.Add([]byte(opsHeader+opLine+opLine[:40]), []byte(truthHeader+"{}\n"))
	f.Add([]byte{}, []byte("{"))
	f.Fuzz(func(t *testing.T, opText, truthText []byte) {
		ops, opErr := check.ReadOps(bytes.NewReader(opText))
		truth, truthErr := check.ReadTruth(bytes.NewReader(truthText))
		_ = check.Check(ops, truth).String()
		_ = truth.Bystanders("s", 1, 9)
		var b bytes.Buffer
		if opErr == nil {
			if err := check.WriteOps(&b, ops); err != nil {
				t.Fatal(err)
			}
			if back, err := check.ReadOps(&b); err != nil || !gocmp.Equal(ops, back) {
				t.Fatalf("%v\n%s", err, gocmp.Diff(ops, back))
			}
		}
		b.Reset()
		if truthErr == nil {
			if err := check.WriteTruth(&b, truth); err != nil {
				t.Fatal(err)
			}
			if back, err := check.ReadTruth(&b); err != nil || !gocmp.Equal(truth, back) {
				t.Fatalf("%v\n%s", err, gocmp.Diff(truth, back))
			}
		}
	})
}
