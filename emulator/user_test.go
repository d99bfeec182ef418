package emulator_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/ocslab/ocslab/emulator"
)

func TestDevice_Users(t *testing.T) {
	d := newDevice(t, exact("4x4"), emulator.Options{})
	bob := emulator.User{Name: "bob", Password: "pw", Group: emulator.Operator}
	for _, test := range []struct {
		name string
		do   func() error
		want error
	}{
		{"Add", func() error { return d.AddUser(nil, bob) }, nil},
		{"AddTwice", func() error { return d.AddUser(nil, bob) }, emulator.ErrUserExists},
		{"AddNoName", func() error { return d.AddUser(nil, emulator.User{Group: emulator.Admin}) }, emulator.ErrNameOrSecret},
		{"AddBadName", func() error { return d.AddUser(nil, emulator.User{Name: "a b"}) }, emulator.ErrNameOrSecret},
		{"AddLongSecret", func() error { return d.AddUser(nil, emulator.User{Name: "c", Password: strings.Repeat("x", 33)}) }, emulator.ErrNameOrSecret},
		{"EditUnknown", func() error { return d.EditUser(nil, "eve", bob) }, emulator.ErrNoUser},
		{"EditBadName", func() error { return d.EditUser(nil, "bob", emulator.User{Name: "b;b"}) }, emulator.ErrNameOrSecret},
		{"EditToTaken", func() error { return d.EditUser(nil, "bob", emulator.User{Name: "admin"}) }, emulator.ErrUserExists},
		{"DemoteLastAdmin", func() error { return d.EditUser(nil, "admin", emulator.User{Group: emulator.Viewer}) }, emulator.ErrLastAdmin},
		{"DeleteLastAdmin", func() error { return d.DeleteUser(nil, "admin") }, emulator.ErrLastAdmin},
		{"DeleteUnknown", func() error { return d.DeleteUser(nil, "eve") }, emulator.ErrNoUser},
		{"Password", func() error { return d.EditUser(nil, "bob", emulator.User{Password: "new", Group: emulator.Admin}) }, nil},
		{"DeleteAdmin", func() error { return d.DeleteUser(nil, "admin") }, nil},
		{"Rename", func() error { return d.EditUser(nil, "bob", emulator.User{Name: "rob"}) }, nil},
	} {
		if err := test.do(); !errors.Is(err, test.want) {
			t.Errorf("%s: error %v, want %v", test.name, err, test.want)
		}
		_, err := d.Login("bob", "pw")
		if known := test.name != "Password" && test.name != "DeleteAdmin" && test.name != "Rename"; (err == nil) != known {
			t.Errorf("%s: Login: %v", test.name, err)
		}
	}
	if diff := cmp.Diff([]emulator.User{{Name: "rob", Group: emulator.Admin}}, d.Users()); diff != "" {
		t.Error(diff)
	}
	if g, err := d.Login("rob", ""); g != emulator.Admin || err != nil { // a new name has no password
		t.Errorf("Login: %v, %v", g, err)
	}
	if d.NeedsPassword("rob") || !d.NeedsPassword("eve") {
		t.Error("wrong users need a password")
	}
	if _, err := d.Login("Rob", ""); !errors.Is(err, emulator.ErrLogin) {
		t.Errorf("Login: %v, want %v", err, emulator.ErrLogin)
	}
	d.SetIdleTimeout(emulator.Operator, time.Minute)
	if a, v := d.IdleTimeout(emulator.Admin), d.IdleTimeout(emulator.Viewer); a != 0 || v != time.Minute {
		t.Errorf("time-outs %v, %v", a, v)
	}
}
