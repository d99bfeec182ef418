package netconf

import (
	"math"
	"strconv"
	"unicode/utf8"
)

// Framing is how messages are told apart on the wire (RFC 6242 section 4).
type Framing uint8

const (
	// EndOfMessage ends each message with "]]>]]>". Every session begins so,
	// and stays so unless both sides announce base:1.1.
	EndOfMessage Framing = iota
	// Chunked sends each message in chunks that are preceded by their size.
	Chunked
)

func (f Framing) String() string {
	switch f {
	case EndOfMessage:
		return "end-of-message"
	case Chunked:
		return "chunked"
	}
	return "Framing(" + strconv.Itoa(int(f)) + ")"
}

const (
	endOfMessage = "]]>]]>"
	endOfChunks  = "\n##\n"
	maxChunk     = math.MaxUint32 // RFC 6242 section 4.2
)

// AppendMessage appends a framed message to dst and returns the extended
// slice. With [Chunked] it is one chunk. An empty message is not a message,
// and nothing is appended for it.
//
// A message that contains "]]>]]>" cannot be sent with [EndOfMessage]. What
// [Node.Append] writes never contains it.
func AppendMessage(dst, msg []byte, f Framing) []byte {
	if f == Chunked {
		return AppendChunks(dst, msg, len(msg))
	}
	if len(msg) == 0 {
		return dst
	}
	return append(append(dst, msg...), endOfMessage...)
}

// AppendChunks appends a message in chunks of at most size bytes and returns
// the extended slice. If size is 4 or more no chunk ends inside a UTF-8
// character: some peers decode each chunk for itself. A size below 1 is taken
// as 1. An empty message is not a message, and nothing is appended for it.
func AppendChunks(dst, msg []byte, size int) []byte {
	if len(msg) == 0 {
		return dst
	}
	size = max(size, 1)
	if largest := uint64(maxChunk); uint64(size) > largest {
		size = int(largest)
	}
	for len(msg) > 0 {
		n := min(size, len(msg))
		if n < len(msg) {
			n = wholeRunes(msg, n)
		}
		dst = append(dst, '\n', '#')
		dst = strconv.AppendInt(dst, int64(n), 10)
		dst = append(dst, '\n')
		dst = append(dst, msg[:n]...)
		msg = msg[n:]
	}
	return append(dst, endOfChunks...)
}

// wholeRunes returns the largest cut of at most n bytes that is not inside a
// UTF-8 character, or n where there is none.
func wholeRunes(msg []byte, n int) int {
	for cut := n; cut > 0 && cut > n-utf8.UTFMax; cut-- {
		if utf8.RuneStart(msg[cut]) {
			return cut
		}
	}
	return n
}
