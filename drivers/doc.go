// Package drivers opens optical circuit switches by URL:
//
//	sw, err := drivers.Open(ctx, "tl1://admin@192.0.2.10:3082", drivers.Options{Password: pw})
//
// A URL names the protocol, the user and the address. Known schemes:
//
//	tl1://[user@]host[:3082]   TL1 over TCP. Query: ?max-pairs=N
//
// A password never stands in a URL; see [Options]. The switch that Open
// returns speaks one session; what the device can do beyond [ocs.Switch] is
// found with [ocs.As].
package drivers
