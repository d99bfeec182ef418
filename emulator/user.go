package emulator

import (
	"crypto/subtle"
	"errors"
	"fmt"
	"slices"
	"time"
)

// Errors of the accounts, in the words that Polatis units use.
var (
	ErrLogin        = errors.New("Permission denied")
	ErrUserExists   = errors.New("User exists")
	ErrNoUser       = errors.New("User does not exist")
	ErrLastAdmin    = errors.New("The last administrator cannot be removed")
	ErrNameOrSecret = errors.New("Invalid user name or password")
)

var errNoAdmin = errors.New("no administrator")

// Login returns the group of a user whose password is right, else [ErrLogin].
// Names are case-sensitive.
func (d *Device) Login(name, password string) (Group, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	i := d.userLocked(name)
	if i < 0 || subtle.ConstantTimeCompare([]byte(d.users[i].Password), []byte(password)) == 0 {
		return "", ErrLogin
	}
	return d.users[i].Group, nil
}

// GroupOf returns the group of a user.
func (d *Device) GroupOf(name string) (g Group, known bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	i := d.userLocked(name)
	if i < 0 {
		return "", false
	}
	return d.users[i].Group, true
}

// NeedsPassword reports whether the user exists and has a password.
func (d *Device) NeedsPassword(name string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	i := d.userLocked(name)
	return i < 0 || d.users[i].Password != ""
}

// Users returns the accounts in order of creation, without passwords.
func (d *Device) Users() []User {
	d.mu.Lock()
	defer d.mu.Unlock()
	us := slices.Clone(d.users)
	for i := range us {
		us[i].Password = ""
	}
	return us
}

// AddUser creates an account for a client, nil if it is nobody's:
// [ErrUserExists], [ErrNameOrSecret]. This and what follows comes to an
// [Device.Edit] of the accounts.
func (d *Device) AddUser(by *Session, u User) error {
	if !wordLike(u.Name, 1) || !wordLike(u.Password, 0) {
		return ErrNameOrSecret
	}
	return d.editUsers(by, func(us []User) ([]User, error) {
		if userIn(us, u.Name) >= 0 {
			return nil, ErrUserExists
		}
		return append(us, u), nil
	})
}

// EditUser renames an account, or changes its password or group; empty fields
// of to stay. A new name clears the password unless a new one is given.
func (d *Device) EditUser(by *Session, name string, to User) error {
	if !wordLike(to.Name, 0) || !wordLike(to.Password, 0) {
		return ErrNameOrSecret
	}
	return d.editUsers(by, func(us []User) ([]User, error) {
		i := userIn(us, name)
		if i < 0 {
			return nil, ErrNoUser
		}
		u := us[i]
		if to.Name != "" && to.Name != name {
			if userIn(us, to.Name) >= 0 {
				return nil, ErrUserExists
			}
			u.Name, u.Password = to.Name, ""
		}
		if to.Password != "" {
			u.Password = to.Password
		}
		if to.Group != "" {
			u.Group = to.Group
		}
		us[i] = u
		return us, nil
	})
}

// DeleteUser removes an account: [ErrNoUser], [ErrLastAdmin].
func (d *Device) DeleteUser(by *Session, name string) error {
	return d.editUsers(by, func(us []User) ([]User, error) {
		i := userIn(us, name)
		if i < 0 {
			return nil, ErrNoUser
		}
		return slices.Delete(us, i, i+1), nil
	})
}

func (d *Device) editUsers(by *Session, change func([]User) ([]User, error)) error {
	_, err := d.Edit(by, Edit{Users: change})
	return err
}

func userIn(us []User, name string) int {
	return slices.IndexFunc(us, func(u User) bool { return u.Name == name })
}

func (d *Device) userLocked(name string) int { return userIn(d.users, name) }

// checkUsers reports accounts that no device can have.
func checkUsers(us []User) error {
	admin := false
	for i, u := range us {
		switch {
		case !wordLike(u.Name, 1):
			return fmt.Errorf("user name %.40q: want 1 to 32 letters, digits and -_.", u.Name)
		case slices.ContainsFunc(us[:i], func(o User) bool { return o.Name == u.Name }):
			return fmt.Errorf("user %s: two accounts of this name", u.Name)
		case u.Group != Admin && u.Group != Operator && u.Group != Viewer:
			return fmt.Errorf("user %s: group %q: want one of %v", u.Name, u.Group, []Group{Admin, Operator, Viewer})
		}
		admin = admin || u.Group == Admin
	}
	if !admin {
		return errNoAdmin
	}
	return nil
}

// wordLike reports whether s has at least least characters, 32 at most, and
// only letters, digits, '-', '_' and '.'.
func wordLike(s string, least int) bool {
	if len(s) < least || len(s) > 32 {
		return false
	}
	for _, c := range []byte(s) {
		switch {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', c == '-', c == '_', c == '.':
		default:
			return false
		}
	}
	return true
}

// MaxSID is the longest system identifier in bytes.
const MaxSID = 20

// SID returns the system identifier; "" when none is set.
func (d *Device) SID() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.sid
}

// SetSID changes it.
func (d *Device) SetSID(sid string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.sid = sid
	d.saveLocked()
}

// IdleTimeout returns after which time without a command a session of a user
// in group g ends; 0 is never.
func (d *Device) IdleTimeout(g Group) time.Duration {
	d.mu.Lock()
	defer d.mu.Unlock()
	if g == Viewer {
		g = Operator
	}
	return d.timeouts[g]
}

// SetIdleTimeout changes it for Admin or Operator (which holds for Viewer, too).
func (d *Device) SetIdleTimeout(g Group, t time.Duration) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.timeouts[g] = t
	d.saveLocked()
}

// Now returns the time of the device's clock.
func (d *Device) Now() time.Time {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.clockLocked()
}

func (d *Device) clockLocked() time.Time { return time.Now().UTC().Add(d.clock) }

// SetClock sets it.
func (d *Device) SetClock(t time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.clock = time.Until(t)
}
