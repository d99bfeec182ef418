package ocstrx

import (
	"context"
	"errors"
	"net"
	"os/exec"
	"strings"
	"testing"

	"github.com/ocslab/ocslab/emulator"
	"github.com/ocslab/ocslab/emulator/internal/servertest"
)

// TestIndependentPeer ensures that the controller link and the registers are as documented:
// testdata/peer.py was written from the documentation alone, and shares nothing with the Go
// code, which would agree with itself in any mistake.
func TestIndependentPeer(t *testing.T) {
	t.Parallel()
	const python = "/usr/bin/python3"
	if err := exec.Command(python, "-c", "").Run(); err != nil {
		t.Skip("no python3: ", err)
	}
	for _, c := range []struct {
		name  string
		noise Noise
		args  []string
		want  []string // what its lines begin with
	}{
		{name: "clean", want: []string{
			"start: ", "hello: 8 slots, serial PEER", "pages: ", "codes: ", "cdb: ", "bundle: 8 modules", "repeats: ", "noise: ",
			"window: ", "refusals: ", "dark: ",
		}},
		{
			name: "lossy", noise: Noise{Flip: 0.003, Drop: 0.003, Seed: 1}, args: []string{"lossy"},
			want: []string{"lossy: 60 switches, each once"},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			p, err := LoadPersonality("ocstrx-8x112g-x8")
			if err != nil {
				t.Fatal(err)
			}
			board, err := NewBoard(p, Options{Serial: "PEER", Seed: 11})
			if err != nil {
				t.Fatal(err)
			}
			board.Noise(c.noise)
			host, port := serveBoard(t, board)
			out, err := exec.CommandContext(t.Context(), python, append([]string{"testdata/peer.py", host, port}, c.args...)...).Output()
			if err != nil {
				var exit *exec.ExitError
				if errors.As(err, &exit) {
					t.Errorf("%s", exit.Stderr)
				}
				t.Fatalf("%v after\n%s", err, out)
			}
			lines := strings.Split(strings.TrimSpace(string(out)), "\n")
			for i, want := range c.want {
				if i >= len(lines) || !strings.HasPrefix(lines[i], want) {
					t.Fatalf("it says\n%swant line %d to begin with %q", out, i+1, want)
				}
			}
		})
	}
}

// serveBoard serves a board over TCP until the test ends.
func serveBoard(t *testing.T, board *Board) (host, port string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	servertest.Run(t, func(ctx context.Context) error { return emulator.Serve(ctx, l, board) })
	host, port, err = net.SplitHostPort(l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	return host, port
}
