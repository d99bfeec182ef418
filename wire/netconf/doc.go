// Package netconf is the codec of NETCONF for both sides of a session:
// framing, messages, subtree filters and edits. A switch emulator reads
// requests and writes replies, a driver does the reverse. It does no I/O, and
// knows nothing of any data model.
//
//	var d netconf.Decoder // hello first
//	for {
//		n, err := conn.Read(buf)
//		d.Feed(buf[:n])
//		for {
//			msg, ok, err := d.Next() // err is final
//			if !ok {
//				break
//			}
//			n, err := netconf.Parse(msg) // err is about this message
//			// Behind the hello: d.SetFraming(netconf.Negotiate(mine, hello))
//		}
//	}
//
// # Layers
//
//   - Framing, RFC 6242: [Decoder], [AppendMessage], [AppendChunks].
//   - XML: [Node], [Parse], [Node.Append]. The parser is our own, since
//     encoding/xml takes five to ten times as long and lets pass what has no
//     place in a message: document types, undeclared prefixes, attributes
//     given twice. It is tested against encoding/xml.
//   - Messages, RFC 6241 and 5277: [Hello], [RPC], [Reply], [Error],
//     [Notification].
//   - Operations: [Filter], [ParseEditConfig], [Edit], [ParseGet] and others.
//
// # Decisions
//
// Where the standards leave something open:
//
//   - White space before a message, and between the last message with
//     end-of-message framing and the first chunk, is skipped: some peers send a
//     line end behind the delimiter. In all else chunks follow RFC 6242 to the
//     byte.
//   - A framing error ends the session, a message that is not well-formed does
//     not: base:1.1 has malformed-message for it. What to do is up to the
//     caller.
//   - Messages must be in the namespace of their standard.
//   - Text is kept exactly, blanks included. White space around values does not
//     matter in what this package itself reads: datastores, options, times and
//     session-ids.
//   - Prefixes in text (of XPath, identities and instance-identifiers) are not
//     resolved. The models of optical switches have none that matter.
//   - The wording of all error messages, and the tag where RFC 6241 appendix A
//     has several that fit, are ours.
//   - See [Edit] for edits.
//
// # Concurrency
//
// Functions may be called from any goroutine. A Decoder belongs to one
// goroutine at a time. Nodes may be read from any number of goroutines as long
// as nobody changes them.
package netconf
