// Package drivers opens optical circuit switches by URL:
//
//	sw, err := drivers.Open(ctx, "tl1://admin@192.0.2.10:3082", drivers.Options{Password: pw})
//
// A URL names the protocol, the user and the address:
//
//	tl1://[user@]host[:3082]         TL1 over TCP
//	tl1+ssh://[user@]host[:6252]     TL1 in an SSH shell
//	tl1+serial:///dev/ttyUSB0        TL1 over a serial line
//	scpi://host[:5025]               SCPI over TCP
//	scpi+serial:///dev/ttyUSB0       SCPI over a serial line
//	netconf://[user@]host[:830]      NETCONF over SSH
//	netconf+tls://host[:6513]        NETCONF over TLS (RFC 7589)
//
// Options follow as a query, "?key=value&key=value":
//
//	tl1         max-pairs=N               cross-connects in one command at most
//	            dialect=polatis|calient|glimmerglass   (default ports 3082, 3083, 10034)
//	scpi        max-pairs=N, gap=100ms    least pause between commands, for old firmware
//	SSH         hostkey=SHA256:...        the key that the host must have
//	            known-hosts=FILE          in place of ~/.ssh/known_hosts and /etc/ssh/ssh_known_hosts
//	            any-hostkey=yes           accept every key
//	            key=FILE, agent=yes       other ways to log in than the password; it opens a key file
//	            legacy=NAME,NAME          old algorithms to offer in addition
//	TLS         ca=FILE, cert=FILE, key=FILE, server-name=NAME, pin=SHA256:...
//	serial      baud=38400, data-bits=8, parity=none, stop-bits=1
//
// Without hostkey, known-hosts or any-hostkey a host whose key is not known is
// refused. A password never stands in a URL; see [Options]. The switch that Open
// returns speaks one session; what the device can do beyond [ocs.Switch] is
// found with [ocs.As].
package drivers
