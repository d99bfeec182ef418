package ocstrx

import (
	"errors"
	"testing"

	"golang.org/x/sys/unix"
)

// TestNacked is which errors of the system are worth another try, and after which of them a
// command may have been done.
func TestNacked(t *testing.T) {
	t.Parallel()
	for err, want := range map[error]struct{ again, reached bool }{
		unix.ENXIO: {true, false}, unix.EREMOTEIO: {true, false}, unix.EAGAIN: {true, false}, unix.ETIMEDOUT: {true, true}, unix.EIO: {}, unix.ENODEV: {},
	} {
		var n nack
		if again := errors.As(nacked(err), &n); again != want.again || n.reached != want.reached || !errors.Is(nacked(err), err) {
			t.Errorf("%v: got %t, %t", err, again, n.reached)
		}
	}
	if nacked(nil) != nil {
		t.Error("no error is one")
	}
}

// TestAdapterOpen is a file that is no adapter.
func TestAdapterOpen(t *testing.T) {
	t.Parallel()
	if _, err := openAdapter("/dev/null"); !errors.Is(err, unix.ENOTTY) {
		t.Errorf("got %v", err)
	}
}
