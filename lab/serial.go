package lab

import (
	"context"
	"io"

	"github.com/ocslab/ocslab/emulator"
)

// serial returns what answers on the serial line: of what the model speaks, the
// language of the first command.
func (f *frontEnds) serial() emulator.FrontEnd {
	p := f.dev.Personality()
	switch {
	case !p.Has(emulator.SpeaksSCPI):
		return f.tl1
	case !p.Has(emulator.SpeaksTL1):
		return f.scpi
	}
	return either{f.tl1, f.scpi}
}

// either is TL1 and SCPI on one line.
type either struct{ tl1, scpi emulator.FrontEnd }

// ServeSession reads until it is clear which language the client speaks.
func (e either) ServeSession(ctx context.Context, conn io.ReadWriteCloser, client emulator.SessionInfo) {
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	defer stop()
	var read []byte
	buf := make([]byte, 256)
	for {
		n, err := conn.Read(buf)
		read = append(read, buf[:n]...)
		fe := e.language(read)
		switch {
		case fe != nil:
			fe.ServeSession(ctx, &resumed{conn, read}, client)
			return
		case err != nil:
			conn.Close()
			return
		case len(read) > 64: // blanks and line breaks, or a word without end
			read = read[len(read)-64:]
		}
	}
}

// language tells the languages apart: the first word of a TL1 command is a verb
// and its modifier, joined by a dash, and no SCPI header has one. Nil is that
// more must be read.
func (e either) language(p []byte) emulator.FrontEnd {
	word := false
	for _, c := range p {
		switch {
		case c == '-' && word:
			return e.tl1
		case c == '*' || c == ':' || c == '?' || word && (c == '\r' || c == '\n' || c == ';'):
			return e.scpi
		case c > ' ':
			word = true
		}
	}
	return nil
}

// resumed is a stream of which something has been read already.
type resumed struct {
	io.ReadWriteCloser
	read []byte
}

// Read gives what has been read, then goes on.
func (r *resumed) Read(p []byte) (int, error) {
	if len(r.read) > 0 {
		n := copy(p, r.read)
		r.read = r.read[n:]
		return n, nil
	}
	return r.ReadWriteCloser.Read(p)
}
