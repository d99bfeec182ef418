package tl1server

import (
	"errors"

	"github.com/ocslab/ocslab/emulator"
	"github.com/ocslab/ocslab/wire/tl1"
)

func group(s string) (emulator.Group, *denial) {
	var g emulator.Group
	if g.UnmarshalText([]byte(s)) != nil {
		return "", deny(tl1.IPNV, "Invalid user access privilege")
	}
	return g, nil
}

func userRefusal(err error) *denial {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, emulator.ErrNameOrSecret):
		return permissionDenied()
	case errors.Is(err, emulator.ErrLastAdmin):
		return deny(tl1.SROF, "%s", err)
	}
	return deny(tl1.IDNV, "%s", err)
}

// account returns the user that a command names and its parameters, n of them
// at least.
func account(c *tl1.Command, n int) (string, []string, *denial) {
	name := c.AID.Text()
	if name == "" {
		return "", nil, tooFew(tl1.IIAC, 0, 1)
	}
	_, bad := text1(c)
	return name, positions(c, n), bad
}

func (ss *session) entUser(c *tl1.Command) (reply, *denial) {
	name, ps, bad := account(c, 3)
	if bad != nil {
		return reply{}, bad
	}
	g, bad := group(ps[2])
	if bad != nil {
		return reply{}, bad
	}
	return reply{}, userRefusal(ss.dev.AddUser(ss.me, emulator.User{Name: name, Password: ps[0], Group: g}))
}

func (ss *session) edUser(c *tl1.Command) (reply, *denial) {
	name, ps, bad := account(c, 4)
	if bad != nil {
		return reply{}, bad
	}
	to := emulator.User{Name: ps[0], Password: ps[1]}
	if ps[3] != "" {
		if to.Group, bad = group(ps[3]); bad != nil {
			return reply{}, bad
		}
	}
	return reply{}, userRefusal(ss.dev.EditUser(ss.me, name, to))
}

func (ss *session) dltUser(c *tl1.Command) (reply, *denial) {
	if c.AID.Text() == "" {
		return reply{}, tooFew(tl1.IIAC, 0, 1)
	}
	return reply{}, userRefusal(ss.dev.DeleteUser(ss.me, c.AID.Text()))
}

func (ss *session) edPassword(c *tl1.Command) (reply, *denial) {
	name, ps, bad := account(c, 2)
	if bad != nil {
		return reply{}, bad
	}
	if user, _ := ss.who(); name != user {
		return reply{}, permissionDenied()
	}
	if _, err := ss.dev.Login(name, ps[0]); err != nil {
		return reply{}, permissionDenied()
	}
	if ps[1] == "" {
		return reply{}, deny(tl1.IPMS, "Too few parameters (1/2) in block 1")
	}
	return reply{}, userRefusal(ss.dev.EditUser(ss.me, name, emulator.User{Password: ps[1]}))
}

func (ss *session) rtrvUsers(c *tl1.Command) (reply, *denial) {
	var r reply
	for _, u := range ss.dev.Users() {
		if name := c.AID.Text(); name == "" || name == u.Name {
			r.text = append(r.text, userLine(u.Name, u.Group))
		}
	}
	if len(r.text) == 0 {
		return r, userRefusal(emulator.ErrNoUser)
	}
	return r, nil
}

func (ss *session) rtrvUser(*tl1.Command) (reply, *denial) {
	name, g := ss.who()
	return line(userLine(name, g))
}

func userLine(name string, g emulator.Group) string { return name + ",," + string(g) }
