// Package tl1 encodes and decodes TL1, the man-machine language of transport
// network elements (ITU-T Z.300 family, Telcordia GR-831-CORE), in the dialect
// spoken by optical circuit switches: Polatis, Calient, Glimmerglass and
// relatives. Both sides of the link are covered: commands and the messages
// that answer them. A switch emulator reads commands and writes messages, a
// driver does the reverse.
//
// The package does no I/O. Bytes are pushed in and values come out:
//
//	var d tl1.Decoder
//	for {
//		n, err := conn.Read(buf)
//		d.Feed(buf[:n])
//		for {
//			m, ok, merr := d.Next()
//			if !ok {
//				break
//			}
//			// merr != nil: one bad message was skipped, go on.
//		}
//	}
//
// # Commands
//
// A command has the form
//
//	VERB-MOD-MOD:TID:AID:CTAG:GB:BLOCK:BLOCK;
//
// where GB is the general block, nearly always empty, and every other field
// may be. [ParseCommand] keeps the position of each field, because switches
// report errors as "Parse error at offset <n> in command".
//
// # Messages
//
// A [Message] is a response to a command, an autonomous report or an
// acknowledgement ("PF 123"). [Decoder] accepts what public drivers of the
// switches above are known to cope with: one or more blanks between words,
// CRLF or LF, extra empty lines, prompts, the echo of the command, quoted
// system names and CTAGs, and replies in several blocks.
//
// A semicolon in a quoted string does not end a command or message. Real peers
// send unbalanced quotes too, so quotes never extend over a line end, and a
// semicolon that starts a line always ends an output message.
//
// # What is not guaranteed
//
// Fields are not checked against GR-831 lengths and character sets: peers
// exceed them, for instance with a quoted CTAG that contains blanks. The order
// of data lines among themselves is kept, and that of comments, but not how
// the two were interleaved; look at [Message.Raw] for that. Bytes that are not
// ASCII are passed through untouched. Range items (a&&b) are not expanded, as
// only the device knows what lies between two names.
//
// # Concurrency
//
// Functions may be called from any goroutine. A Decoder or CommandDecoder
// belongs to one goroutine at a time.
package tl1
