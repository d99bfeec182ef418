// Package scpi encodes and decodes SCPI, the language of laboratory instruments
// (IEEE 488.2, SCPI-99), as optical circuit switches speak it. Both sides of
// the link are covered: an emulator reads program messages and keeps the status
// that the standard asks for, a driver writes them and reads replies.
//
// The package does no I/O. Bytes are pushed in and values come out:
//
//	var d scpi.Decoder // or scpi.ReplyDecoder
//	for {
//		n, err := conn.Read(buf)
//		d.Feed(buf[:n])
//		for {
//			line, ok, tooLong := d.Next()
//			if !ok {
//				break
//			}
//			...
//		}
//	}
//
// # Program messages
//
// A line is a program message: units joined by ';', each a header and its
// parameters.
//
//	:OXC:SWITch:CONNect:ADD (@1,2),(@17,18);STATe?;*OPC?
//
// [ParseMessage] takes it apart, a [Tree] finds what a header stands for: in
// short or long form, relative to the header before (SCPI-99 volume 1, 6.2.4).
//
// # Replies
//
// A device answers queries only. What the standard calls response data is read
// by [ParseLists], [ParseValues], [Unquote] and [ParseError].
//
// # What is accepted beyond the standard
//
//   - LF, CR LF and CR end a line (IEEE 488.2 has LF), but not inside a quoted
//     string or a definite block. A string begins only where one may, so that
//     an apostrophe in a word does not swallow the lines that follow; one that
//     is not closed does, until the line is too long.
//   - Empty units, such as a ';' before the end of a line.
//   - A unit that cannot be read does not spoil those behind its ';': a client
//     that adds ";:SYSTem:ERRor?" to whatever it sends gets an answer.
//   - Four numbers with dots (192.168.1.1) are a parameter.
//   - Expressions may hold other expressions and strings, as in SCPI-99.
//   - Blanks in a list of channels, and after the comma in an error.
//
// [CheckStrict] and [CheckStrictReply] accept none of these. They share no code
// with the rest, so that a test can judge one by the other.
//
// Channels are single numbers: the forms with '!' (matrices) and with names of
// modules are errors.
//
// # Concurrency
//
// Functions may be called from any goroutine, and so may the methods of
// [Queue]. A decoder, a [Status] or a [Tree] that is still added to belongs to
// one goroutine at a time.
package scpi
