// Package netconfswitch drives optical circuit switches that speak NETCONF as
// Polatis network interface cards do: the YANG modules optical-switch and
// polatis-switch over the SSH subsystem "netconf", port 830.
//
// A [Switch] keeps one session, and opens it again when it breaks, when the
// device has stopped in the middle of a reply, or when only part of a request
// could be sent. Calls overlap: a reply is taken for the request whose
// message-id it carries (RFC 6241, section 4.2), replies that nobody waits for
// are dropped, and notifications are handed to [Switch.Notify]. What is no
// NETCONF message ends the session. Both framings of RFC 6242 are spoken.
//
// Hellos are exchanged, and requests are made, with
// github.com/Juniper/go-netconf. Streams, framing, concurrency and the reading
// of replies are ours, since that library loses messages that come together,
// mixes up replies that come out of order, knows no contexts and no
// notifications, and takes the first of several errors only. Its Exec costs some
// microseconds for a request, and a quarter of a millisecond for the reply with
// a map of 192 circuits; see BenchmarkLibrary.
//
// A session begins with a get of product-information, which is sent again, with
// another message-id, until the device says something to it: some servers, such
// as netconfd, lose a request that comes in the same read as our hello.
//
// # What is repeated and what is not
//
//   - A request of which nothing was sent is sent on a new session.
//   - A request whose reply was lost with the session may have taken effect:
//     only reads are repeated, once and on a new session. All else is an error,
//     and [ocs.Reconcile] looks at what the device holds.
//   - A request whose reply did not come in time is never repeated.
//   - Notify and Restart are never repeated.
//
// # Notes on the devices
//
//   - The hello decides what things are called: the list of cross-connects is
//     pairs before optical-switch 2017-08-04 and pair since; ports, monitors and
//     labels are in the container ports before, and in port-config, opm-power and
//     opm-config since; notifications are opt-in (enable-notifications) before
//     polatis-switch 2017-09-11 and opt-out (mask-notification) since. Attenuators
//     are known in the newer form only.
//   - Every get is filtered to one container, and an error next to its data that
//     names another one is ignored: devices without OpenFlow complain about that.
//   - A change is one edit-config on running: removals by ingress, the key of the
//     list, then what is added, merged. An ingress that gets another egress is
//     one entry and not removed first. Others' cross-connects are not named, but
//     the device takes over a busy egress. One that refuses that with in-use is
//     removed from first, in a second request, and the driver remembers.
//   - Removals say "remove", which does not mind what is gone. In base:1.0 there
//     is only "delete": when that is refused with data-missing, the map is read,
//     and what is still there is deleted with all else that was asked for.
//   - averaging-time 1 to 8 are the times that the same cards offer over TL1: 10,
//     20, 50, 100, 200, 500 ms, 1 s and 2 s. The YANG module describes them as
//     about 10 ms and twice as much for each step, up to 1.28 s.
//   - Attenuators are used in mode RELATIVE with the connected ingress as
//     reference, where the level is the negative loss of the whole path.
//   - A restart is that of the network card; the matrix is reset with it when the
//     startup-mode is MODE_VOLATILE. It is asked for with a second of delay, as
//     without one there is no reply.
//   - The user's rights are the device's business: what one may not read is left
//     out of replies without a word (RFC 8341).
package netconfswitch
