package rail

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"github.com/ocslab/ocslab/internal/statedir"
	"github.com/ocslab/ocslab/orchestrator/proto"
	"github.com/ocslab/ocslab/topology/opus"
)

// base is the first line of a journal: what the rail was meant to hold when the journal was begun.
type base struct {
	Version    int         `json:"version"`
	Rail       string      `json:"rail"`
	Switch     string      `json:"switch"`
	Job        opus.Job    `json:"job"`
	Policy     opus.Policy `json:"policy"`
	Epoch      uint64      `json:"epoch"`
	Generation uint64      `json:"generation"`
	Intent     config      `json:"intent"`
	Plan       *config     `json:"plan,omitempty"` // that was left for the giant ring or death
	Unsure     []int       `json:"unsure,omitempty"`
}

// config is a configuration of the rail. One that has an ID, or is the giant ring, needs no circuits.
type config struct {
	Shape    proto.Shape `json:"shape"`
	ID       string      `json:"topology_id,omitempty"`
	Circuits [][2]int    `json:"circuits,omitempty"`
	Reason   string      `json:"reason,omitempty"`
}

// line is any of the others.
type line struct {
	Epoch uint64 `json:"epoch,omitempty"` // a controller has opened the job
	By    string `json:"by,omitempty"`

	Do      uint64   `json:"do,omitempty"` // a request is about to be carried out: its number, and what it was
	Whole   *config  `json:"whole,omitempty"`
	Join    [][2]int `json:"join,omitempty"`
	Part    []int    `json:"part,omitempty"`
	Aside   *config  `json:"plan,omitempty"` // the plan that it leaves
	Resumed bool     `json:"resumed,omitempty"`

	Did    uint64 `json:"did,omitempty"`    // it reads back
	Failed uint64 `json:"failed,omitempty"` // it does not, and the ports that are its own hold this, or are unsure

	Generation uint64  `json:"generation,omitempty"`
	Holds      *config `json:"holds,omitempty"`  // of Failed: the configuration that is intended from now on
	Unsure     []int   `json:"unsure,omitempty"` // of Did and Failed: all there are
}

const journalVersion = 1

// journal is the file. Methods may be called from one goroutine at a time.
type journal struct {
	file   *os.File // nil keeps none
	unlock func()
	err    error // a line that could not be written; from then on none is, and no change begins
}

// past is what a journal tells.
type past struct {
	base
	known bool // false: there was none
	torn  bool // something had to be moved aside
	lost  bool // more than the line that was being written when the process died

	// Requests on different ports are carried out, and written, in any order, and each says what is intended when all
	// before it are done. So Intent is what begun makes of from in the order of their numbers.
	from  config
	begun []line
}

// openJournal takes the journal of a job on a rail, and returns what it tells.
func openJournal(ctx context.Context, opt *Options) (*journal, past, error) {
	if opt.Dir == "" {
		return &journal{}, past{}, nil
	}
	if err := statedir.Make(opt.Dir); err != nil {
		return nil, past{}, err
	}
	path := filepath.Join(opt.Dir, url.PathEscape(opt.Rail)+"@"+url.PathEscape(opt.Job.Name)+".journal")
	waiting, cancel := context.WithTimeoutCause(ctx, 5*time.Second, errors.New("another process works with this rail"))
	defer cancel()
	unlock, err := statedir.Lock(waiting, path+".lock")
	if err != nil {
		return nil, past{}, fmt.Errorf("journal of rail %s: %w", opt.Rail, err)
	}
	j := &journal{unlock: unlock}
	text, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		j.close()
		return nil, past{}, err
	}
	p, rest := readJournal(text, opt)
	if len(rest) > 0 {
		// It is kept, for people: somebody may want to know what it was.
		p.torn, p.lost = true, bytes.IndexByte(rest, '\n') >= 0
		aside := path + ".torn-" + strconv.FormatInt(time.Now().UnixNano(), 36)
		if err := statedir.WriteFile(aside, rest); err != nil {
			j.close()
			return nil, past{}, err
		}
	}
	if p.known && (!sameJob(p.Job, opt.Job) || p.Policy != opt.Policy || p.Switch != opt.Switch) {
		j.close()
		return nil, past{}, fmt.Errorf("%s is of another job with the name %q, or of another switch: move it away if that has ended", path, opt.Job.Name)
	}
	j.file, err = os.OpenFile(path, os.O_APPEND|os.O_WRONLY|os.O_CREATE, 0o600)
	if err != nil {
		j.close()
		return nil, past{}, err
	}
	return j, p, nil
}

// begin makes b the whole of the journal.
func (j *journal) begin(b base) error {
	if j.file == nil {
		return nil
	}
	text, err := json.Marshal(b)
	if err != nil {
		return err
	}
	path := j.file.Name()
	if err := statedir.WriteFile(path, append(text, '\n')); err != nil {
		return err
	}
	j.file.Close()
	j.file, err = os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0o600)
	return err
}

// add appends lines with one write.
func (j *journal) add(lines ...line) error {
	if j.file == nil || j.err != nil || len(lines) == 0 {
		return j.err
	}
	var text []byte
	for _, l := range lines {
		one, err := json.Marshal(l)
		if err != nil {
			return err
		}
		text = append(append(text, one...), '\n')
	}
	if _, err := j.file.Write(text); err != nil {
		j.err = fmt.Errorf("the journal cannot be written, so nothing is changed any more: %w", err)
	}
	return j.err
}

func (j *journal) close() {
	if j.file != nil {
		j.file.Close()
	}
	if j.unlock != nil {
		j.unlock()
	}
}

// readJournal returns what a journal tells, and what of its text cannot be understood: from there on nothing is believed.
func readJournal(text []byte, opt *Options) (p past, rest []byte) {
	first, more, whole := bytes.Cut(text, []byte("\n"))
	if !whole || json.Unmarshal(first, &p.base) != nil || p.Version != journalVersion {
		return past{}, text
	}
	if _, err := p.Intent.peers(opt); err != nil {
		return past{}, text
	}
	p.known = true
	p.from = p.Intent
	for len(more) > 0 {
		one, next, whole := bytes.Cut(more, []byte("\n"))
		var l line
		if !whole || json.Unmarshal(one, &l) != nil || !p.take(l, opt) {
			return p, more
		}
		more = next
	}
	return p, nil
}

// take adds a line, unless it makes no sense.
func (p *past) take(l line, opt *Options) bool {
	switch {
	case l.Epoch > 0:
		p.Epoch = l.Epoch
	case l.Do > 0:
		if !p.begin(l, opt) {
			return false
		}
		if l.Aside != nil {
			p.Plan = l.Aside
		}
		if l.Resumed {
			p.Plan = nil
		}
	case l.Did > 0:
		p.Generation, p.Unsure = max(p.Generation, l.Generation), l.Unsure
	case l.Failed > 0:
		p.Generation, p.Unsure = max(p.Generation, l.Generation), l.Unsure
		if l.Holds != nil {
			if _, err := l.Holds.peers(opt); err != nil {
				return false
			}
			p.Intent, p.from, p.begun = *l.Holds, *l.Holds, nil
		}
	default:
		return false
	}
	return true
}

// begin adds a request to the intent.
func (p *past) begin(l line, opt *Options) bool {
	i, _ := slices.BinarySearchFunc(p.begun, l.Do, func(b line, n uint64) int { return cmp.Compare(b.Do, n) })
	begun, next := p.begun, p.from
	if i == len(begun) { // as nearly always
		begun, next = []line{l}, p.Intent
	} else {
		begun = slices.Insert(slices.Clone(begun), i, l)
	}
	ok := true
	for _, b := range begun {
		if next, ok = next.after(b, opt); !ok {
			return false
		}
	}
	p.Intent = next
	p.begun = slices.Insert(p.begun, i, l)
	if l.Whole != nil { // whatever was before it
		p.begun = p.begun[i:]
	}
	const most = 64 // more than are ever under way at the same time
	if len(p.begun) > most {
		p.from, ok = p.from.after(p.begun[0], opt)
		p.begun = p.begun[1:]
	}
	return ok
}

// after returns what c becomes with a request.
func (c config) after(l line, opt *Options) (config, bool) {
	if l.Whole != nil {
		_, err := l.Whole.peers(opt)
		return *l.Whole, err == nil
	}
	peers, err := c.peers(opt)
	if err != nil || rejoin(peers, l.Join, l.Part) != nil {
		return config{}, false
	}
	return config{Shape: proto.Circuits, Circuits: pairs(peers)}, true
}

// peers returns the configuration by duplex port.
func (c config) peers(opt *Options) ([]int32, error) {
	var m opus.Matching
	var err error
	switch c.Shape {
	case proto.Digits:
		var id opus.ID
		if id, err = opt.Job.ParseID(c.ID); err == nil {
			m, err = opus.Build(opt.Job, id, opt.Policy)
		}
	case proto.Giant:
		m, err = opus.GiantRing(opt.Job)
	case proto.Circuits, proto.Dead:
		peers := make([]int32, opt.Job.DuplexPorts())
		for q := range peers {
			peers[q] = dark
		}
		return peers, rejoin(peers, c.Circuits, nil)
	default:
		err = fmt.Errorf("%w: unknown shape %.40q", opus.ErrJob, c.Shape)
	}
	if err != nil {
		return nil, err
	}
	return peersOf(m, opt.Job.DuplexPorts()), nil
}

func peersOf(m opus.Matching, n int) []int32 {
	peers := make([]int32, n)
	for q := range peers {
		peers[q] = dark
		if p, ok := m.Peer(q); ok {
			peers[q] = int32(p)
		}
	}
	return peers
}

// pairs are the circuits that both of their ports agree on.
func pairs(peers []int32) [][2]int {
	var all [][2]int
	for q, p := range peers {
		if int(p) > q && int(peers[p]) == q {
			all = append(all, [2]int{q, int(p)})
		}
	}
	return all
}

// rejoin makes circuits, and removes those that end at one of their ports or at one of part.
func rejoin(peers []int32, join [][2]int, part []int) error {
	leave := func(q int) {
		if p := peers[q]; p >= 0 {
			peers[q], peers[p] = dark, dark
		}
	}
	seen := map[int]bool{}
	use := func(q int) error {
		switch {
		case q < 0 || q >= len(peers):
			return fmt.Errorf("the job has no duplex port %d: want 0 to %d", q, len(peers)-1)
		case seen[q]:
			return fmt.Errorf("duplex port %d is named twice", q)
		}
		seen[q] = true
		return nil
	}
	for _, c := range join {
		for _, q := range c {
			if err := use(q); err != nil {
				return err
			}
		}
	}
	for _, q := range part {
		if q < 0 || q >= len(peers) {
			return use(q)
		}
	}
	for _, q := range part {
		leave(q)
	}
	for _, c := range join {
		leave(c[0])
		leave(c[1])
	}
	for _, c := range join {
		peers[c[0]], peers[c[1]] = int32(c[1]), int32(c[0])
	}
	return nil
}

func sameJob(a, b opus.Job) bool {
	if a.Name != b.Name || a.Stages != b.Stages || a.PortsPerRank() != b.PortsPerRank() || len(a.Axes) != len(b.Axes) {
		return false
	}
	for i := range a.Axes {
		if a.Axes[i] != b.Axes[i] {
			return false
		}
	}
	return true
}
