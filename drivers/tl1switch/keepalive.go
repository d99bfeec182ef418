package tl1switch

import "time"

// keepAlive says something whenever the session has been idle for that long, until the
// Switch is closed. It opens no session.
func (sw *Switch) keepAlive(idle time.Duration) {
	timer := time.NewTimer(idle)
	defer timer.Stop()
	for {
		select {
		case <-sw.life.Done():
			return
		case <-timer.C:
		}
		timer.Reset(sw.ping(idle))
	}
}

// ping keeps the session alive if it is time, and returns when it will be next.
func (sw *Switch) ping(idle time.Duration) time.Duration {
	if sw.take(sw.life, "") != nil {
		return idle
	}
	defer sw.turn.Pass()
	if sw.s == nil || !sw.s.usable() {
		return idle
	}
	if left := idle - sw.s.quiet(); left > 0 {
		return left
	}
	// If this fails, the next request finds out.
	_, _ = sw.s.exchange(sw.life, request{op: "keep the session alive", code: "RTRV-HDR", read: true})
	return idle
}

// quiet returns for how long nothing has been asked.
func (s *session) quiet() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	return time.Since(s.since)
}
