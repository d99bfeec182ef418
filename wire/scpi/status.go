package scpi

import "sync"

// Bits of the standard event status register (IEEE 488.2, 11.5.1).
const (
	OperationComplete byte = 1 << iota
	RequestControl
	QueryErrorEvent
	DeviceErrorEvent
	ExecutionErrorEvent
	CommandErrorEvent
	UserRequest
	PowerOn
)

// Bits of the status byte (IEEE 488.2, 11.2; SCPI-99 volume 1, 9).
const (
	ErrorAvailable    byte = 1 << 2 // the error queue is not empty
	MessageAvailable  byte = 1 << 4 // a reply waits to be read
	EventSummary      byte = 1 << 5 // an enabled event has come
	MasterSummary     byte = 1 << 6 // an enabled bit of the status byte is set
	serviceSelectable      = ^MasterSummary
)

// DefaultQueue is how many errors a [Queue] keeps by default.
const DefaultQueue = 20

// A Queue keeps errors until they are asked for, oldest first. When it is full,
// the last one becomes "Queue overflow" (SCPI-99 volume 2, 21.8.1). The zero
// value is empty. It is safe for concurrent use.
type Queue struct {
	// Max is how many errors it keeps; 0 or less means DefaultQueue. Set it
	// before the first use.
	Max int

	mu   sync.Mutex // guards list
	list []Error
}

// Push adds an error.
func (q *Queue) Push(e Error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if limit := orDefault(q.Max, DefaultQueue); len(q.list) >= limit {
		q.list[limit-1] = NewError(QueueOverflow, "")
		return
	}
	q.list = append(q.list, e)
}

// Pop takes the oldest error off, or returns that there is none.
func (q *Queue) Pop() Error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.list) == 0 {
		return NewError(NoError, "")
	}
	e := q.list[0]
	q.list = q.list[1:]
	return e
}

// Drain takes all errors off.
func (q *Queue) Drain() []Error {
	q.mu.Lock()
	defer q.mu.Unlock()
	list := q.list
	q.list = nil
	return list
}

// Len returns how many errors there are.
func (q *Queue) Len() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.list)
}

// Status is what a device knows of one client: the registers of IEEE 488.2 and
// the error queue of SCPI. The zero value is cleared, and nothing is enabled.
type Status struct {
	// Errors is the queue, which sessions may share. Nil is one of its own, which
	// the first use makes.
	Errors *Queue

	events       byte // ESR
	enable       byte // ESE
	serviceCause byte // SRE
}

func (s *Status) queue() *Queue {
	if s.Errors == nil {
		s.Errors = new(Queue)
	}
	return s.Errors
}

// Fail puts an error in the queue and sets the event of its class (SCPI-99
// volume 2, 21.8.2).
func (s *Status) Fail(e Error) {
	s.queue().Push(e)
	switch class := e.Code / 100; {
	case class == -1:
		s.events |= CommandErrorEvent
	case class == -2:
		s.events |= ExecutionErrorEvent
	case class == -4:
		s.events |= QueryErrorEvent
	default:
		s.events |= DeviceErrorEvent
	}
}

// Complete is *OPC: all that was asked for before is done.
func (s *Status) Complete() { s.events |= OperationComplete }

// Clear is *CLS: no events, no errors. What is enabled stays.
func (s *Status) Clear() {
	s.events = 0
	s.queue().Drain()
}

// Events is *ESR?: it returns the events and clears them.
func (s *Status) Events() byte {
	e := s.events
	s.events = 0
	return e
}

// EventEnable is *ESE?.
func (s *Status) EventEnable() byte { return s.enable }

// EnableEvents is *ESE: which events show in the status byte.
func (s *Status) EnableEvents(mask byte) { s.enable = mask }

// ServiceEnable is *SRE?.
func (s *Status) ServiceEnable() byte { return s.serviceCause }

// EnableService is *SRE: which bits of the status byte show in its bit 6, which
// cannot be one of them.
func (s *Status) EnableService(mask byte) { s.serviceCause = mask & serviceSelectable }

// Byte is *STB?. It clears nothing. Waiting says whether a reply waits to be
// read.
func (s *Status) Byte(waiting bool) byte {
	var b byte
	if s.queue().Len() > 0 {
		b |= ErrorAvailable
	}
	if waiting {
		b |= MessageAvailable
	}
	if s.events&s.enable != 0 {
		b |= EventSummary
	}
	if b&s.serviceCause != 0 {
		b |= MasterSummary
	}
	return b
}
