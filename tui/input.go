package tui

import (
	"bytes"
	"crypto/rand"
	"encoding/binary"
	"fmt"
	"io"
	"os"
	"regexp"
	"time"

	tea "github.com/charmbracelet/bubbletea"
)

// marker puts a mark in front of each read of the terminal, so that the UI knows which keys arrived together.
// bubbletea v1.3.10 does not say: it cuts up to 256 bytes of a read into messages, one for each run of letters and
// one for each other key, and hands them on one by one. The mark is a mouse event that no mouse makes, and keeps its
// place among the messages; so what a key belongs to depends on no clock and no goroutine. (bubbletea also passes on
// control sequences that it does not know, but as a slice of the buffer that it reads into.)
type marker struct {
	src    io.Reader
	now    func() time.Time
	began  time.Time
	secret int // the column of the mouse: a pasted text cannot contain a mark

	more  bool   // the next read continues this one, and gets no mark
	paste bool   // a bracketed paste has begun and not ended
	tail  []byte // of the read before, as far as it may be the beginning of a sequence
}

func newMarker(src io.Reader, now func() time.Time) *marker {
	var b [8]byte
	_, _ = rand.Read(b[:]) // never fails
	// At least 2^61, and so no column of a terminal.
	return &marker{src: src, now: now, began: now(), secret: int(binary.NativeEndian.Uint64(b[:])>>2 | 1<<61)}
}

// markFormat is the release of a mouse button: the column is the secret, and the line twice the nanoseconds since the
// marker began, and one more if the read is one key.
const markFormat = "\x1b[<0;%019d;%019dm"

// markLen is the length of every mark.
var markLen = len(fmt.Sprintf(markFormat, 0, 0))

// Read reads what the terminal has, behind a mark. There is none in front of a read that continues the one before:
// that was as long as there was room for, or the end of a paste is missing.
func (r *marker) Read(p []byte) (int, error) {
	head := markLen
	if r.more || len(p) < 2*markLen {
		head = 0
	}
	n, err := r.src.Read(p[head:])
	if n <= 0 {
		return n, err
	}
	data := p[head : head+n]
	r.follow(data, head+n == len(p))
	if head > 0 {
		line := 2 * int(r.now().Sub(r.began))
		if !r.more && oneKey.Match(data) {
			line++
		}
		copy(p, fmt.Sprintf(markFormat, r.secret+1, line+1)) // as terminals count, from 1
	}
	return head + n, err
}

const (
	pasteBegin = "\x1b[200~"
	pasteEnd   = "\x1b[201~"
)

// follow finds out whether the read after this one continues it. It sees a paste begin where bubbletea does: not
// behind an escape that bubbletea takes for a key of its own, and not in a sequence that two reads have a part of,
// unless bubbletea waits for the second.
func (r *marker) follow(data []byte, full bool) {
	rest := append(r.tail, data...)
	r.tail = nil
	for {
		if r.paste {
			i := bytes.Index(rest, []byte(pasteEnd))
			if i < 0 {
				r.tail = bytes.Clone(rest[max(0, len(rest)-len(pasteEnd)+1):])
				break
			}
			rest, r.paste = rest[i+len(pasteEnd):], false
		}
		i := bytes.Index(rest, []byte(pasteBegin))
		if i < 0 {
			if full && bytes.HasSuffix(rest, []byte("\x1b")) {
				r.tail = []byte("\x1b")
			}
			break
		}
		r.paste = i == 0 || rest[i-1] != '\x1b'
		rest = rest[i+len(pasteBegin):]
	}
	r.more = full || r.paste
}

// oneKey matches a read that is one key: a character, a control sequence, or one of these with alt. What it does not
// know counts as several keys, which do less.
var oneKey = regexp.MustCompile(`(?s)^\x1b?(.|\x1b\[[\x30-\x3f]*[\x20-\x2f]*[\x40-\x7e$]|\x1b\[\[[A-E]|\x1bO[\x20-\x7e])$`)

// parse returns what a mark says: when the read returned, and whether it is one key.
func (r *marker) parse(msg tea.MouseMsg) (at time.Time, alone, ok bool) {
	if r == nil || msg.X != r.secret {
		return time.Time{}, false, false
	}
	return r.began.Add(time.Duration(msg.Y / 2)), msg.Y%2 == 1, true
}

// fileMarker is a marker of a terminal, which bubbletea makes raw and whose reads it cancels.
type fileMarker struct {
	*os.File
	marker *marker
}

func (f *fileMarker) Read(p []byte) (int, error) { return f.marker.Read(p) }

// newInput returns what bubbletea reads in place of the input, and its marker.
func newInput(in io.Reader, now func() time.Time) (io.Reader, *marker) {
	r := newMarker(in, now)
	if f, ok := in.(*os.File); ok {
		return &fileMarker{f, r}, r
	}
	return r, r
}
