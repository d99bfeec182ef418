// Package trxlink is the controller link: the protocol that a host speaks over a serial
// line with the board that transceivers are plugged into. It carries reads and writes of
// the modules' memory, CDB messages, and the trigger that switches armed modules at once.
// It does no I/O.
//
// # Frames
//
// All numbers are big-endian. A frame is
//
//	offset  bytes
//	0       2      A5h 5Ah
//	2       1      version of the protocol, 1
//	3       1      kind: 01h to 7Fh a request, the same plus 80h its reply
//	4       1      slot of the module, from 0; FFh the board itself
//	5       1      sequence number, chosen by the host; the reply has the same
//	6       2      length of the payload, 0 to 256
//	8       1      CRC-8 of bytes 2 to 7 (polynomial 07h, initially 0)
//	9       n      payload
//	9+n     2      CRC-16 of bytes 2 to 8+n (IBM-3740: polynomial 1021h, initially FFFFh)
//
// The payload of a reply begins with a [Code]; what follows is there only after CodeOK,
// unless the kind says otherwise:
//
//	00h  ok
//	01h  the board does not speak the version of the request
//	02h  unknown kind
//	03h  a payload that makes no sense: too short or long, a count of 0 or beyond 128, a
//	     run that does not lie within the lower memory or one upper page, a page or bank
//	     that the module has not, a mask of no slot
//	04h  there is no such slot; a module asked for what is the board's, or the reverse
//	05h  the slot is empty, or its module does not answer
//	06h  the module did not end a CDB command in time
//	07h  of TRIGGER: a module is not armed; none was triggered
//	08h  the board has no such feature
//	09h  the board has had no HELLO since it started, and has done nothing ([CodeHello])
//
// # Noise and lost bytes
//
// A receiver looks for A5h 5Ah. When the CRC-8 or the CRC-16 is wrong it goes on looking
// one byte behind the A5h, so that a frame inside of what was taken for one is found. A
// frame that has begun and does not go on for [Gap] is given up in the same way. The board
// tells nobody of what it could not read.
//
// A host that gets no reply in time sends the same bytes again. The board keeps the last
// [Window] requests and their replies: a request that has come before, by all of its
// bytes, is answered again and not done again. So a command takes effect once, however often
// a reply is lost. A host uses sequence numbers one after another, and has at most
// [Outstanding] requests under way. The board does what it receives in the order in which it
// comes, and does not wait for one that was lost; so a host sends ahead only what does not
// depend on what went before it, such as reads, or requests to other modules. HELLO makes the
// board forget what came before.
//
// A board that has just started remembers nothing, and could do once more what it did before
// it started. So it does nothing, and answers [CodeHello], until it has had a HELLO. A host
// that gets CodeHello in reply to what it has sent more than once does not know whether that
// was done.
//
// The reply to HELLO has the bytes that the host has chosen. One with others was for a HELLO
// before this one, perhaps of another host, and is to be ignored: with it all replies that
// were still on the line have come.
//
// # Requests
//
//	01h HELLO    payload 4 bytes chosen by the host at random, so that no HELLO is taken for
//	             one that came before; slot FFh. Reply: code, version, number of slots,
//	             features (bit 0 a trigger line, bit 1 a plate), serial number of the board
//	             (16, blanks), firmware (8, blanks), the payload of the request
//	02h READ     bank, page, offset, count 1 to 128. Reply: code, the bytes
//	03h WRITE    bank, page, offset, 1 to 128 bytes. Reply: code
//	04h CDB      command id (2), payload (0 to 120). The board writes it to page 9Fh with its
//	             check code and waits for the module to end, at most [CDBTime]. Reply: code,
//	             CDB status (00h:37), reply payload. CodeOK says that the module has ended,
//	             the status how
//	05h TRIGGER  mask of slots (2), bit 0 is slot 0; slot FFh. Pulls the trigger line of all
//	             of them at once, if all are armed; if one is not, of none. Reply: code; with
//	             CodeNotArmed the slot of the first that is not
//	06h PLATE    temperature to hold (2, signed, 1/256 °C; 8000h leaves it, 7FFFh switches
//	             the plate off); slot FFh. Reply: code, temperature to hold, temperature
package trxlink
