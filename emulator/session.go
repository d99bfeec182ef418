package emulator

import (
	"cmp"
	"slices"
	"time"
)

// SessionInfo is who is connected to a device, and how.
type SessionInfo struct {
	ID       int    // 1 for the first since the device was made
	Protocol string // "TL1", "SSH-TL1", "SCPI", "NETCONF", ...
	Port     int    // of the device, 0 on a serial line
	Client   string // its address without the port; "" on a serial line
	User     string // "" before login, or where the protocol has none
	Since    time.Time
}

// Session is a client's connection to a device, as the device lists it.
// It is safe for concurrent use.
type Session struct {
	d    *Device
	info SessionInfo // guarded by d.mu
	end  func()
}

// Enter lists a client as connected until Leave. End is called at most a few
// times, from any goroutine, when somebody disconnects it; it must not block.
func (d *Device) Enter(info SessionInfo, end func()) *Session {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.entered++
	info.ID, info.Since = d.entered, time.Now()
	s := &Session{d, info, end}
	d.sessions[info.ID] = s
	return s
}

// Leave takes the client off the list. It may be called more than once.
func (s *Session) Leave() {
	s.d.mu.Lock()
	defer s.d.mu.Unlock()
	delete(s.d.sessions, s.info.ID)
}

// SetUser says who has logged in; "" is nobody any more.
func (s *Session) SetUser(name string) {
	s.d.mu.Lock()
	defer s.d.mu.Unlock()
	s.info.User = name
}

// Info returns who it is.
func (s *Session) Info() SessionInfo {
	s.d.mu.Lock()
	defer s.d.mu.Unlock()
	return s.info
}

// Sessions returns who is connected, in order of arrival.
func (d *Device) Sessions() []SessionInfo {
	d.mu.Lock()
	defer d.mu.Unlock()
	list := make([]SessionInfo, 0, len(d.sessions))
	for _, s := range d.sessions {
		list = append(list, s.info)
	}
	slices.SortFunc(list, func(a, b SessionInfo) int { return cmp.Compare(a.ID, b.ID) })
	return list
}

// EndSession disconnects a client and reports whether there was one.
func (d *Device) EndSession(id int) bool {
	d.mu.Lock()
	s := d.sessions[id]
	d.mu.Unlock()
	if s == nil {
		return false
	}
	s.end()
	return true
}

// evictLocked disconnects whoever has an account that is gone, but for the
// client that has seen to that and waits for a reply. A session keeps the rights
// that it began with, so nobody may keep it who has none at all any more.
func (d *Device) evictLocked(by *Session, users []User) {
	for _, s := range d.sessions {
		if s != by && s.info.User != "" && userIn(users, s.info.User) < 0 {
			go s.end() // which may want to leave the list
		}
	}
}
