// Package netconfserver is the NETCONF front end of an emulated switch: RFC
// 6241 over a stream that is connected already (an SSH subsystem, see package
// sshserver) or over TLS (RFC 7589), notifications (RFC 5277), and the YANG
// modules optical-switch and polatis-switch in all their revisions.
//
//	srv := &netconfserver.Server{Device: dev}
//	ssh := &sshserver.Server{Device: dev, Subsystems: map[string]emulator.FrontEnd{"netconf": srv}, ...}
//
// The datastore running is a view of the device. Reads build as much of it as
// the filter may select. An edit-config is checked against the YANG text, which
// is what decides about names, types, ranges, mandatory leaves and conditions,
// and comes to one [emulator.Edit]: it takes effect as a whole or not at all, and
// is acknowledged when the device says so. Requests of one session are answered
// in order; sessions do not wait for each other. A client that does not read
// delays nobody but itself.
//
// # What is decided here because nobody has published it
//
// The fields of [emulator.NETCONF] choose the revisions, base:1.0 alone, no
// interleave, the rpc-error about OpenFlow, compact notifications and the number
// of sessions; [emulator.Control] chooses what happens to busy ports. The rest:
//
// Modules:
//
//   - The text of the modules is ours, and the differences between revisions are
//     those that are publicly known, see [Modules].
//   - enable-notifications and the operations get_alarm_state and shutter-status
//     are there before 2017-09-11 of polatis-switch, logged-in-users before
//     2018-01-19.
//   - get-schema has the two modules, not the IETF ones that are announced.
//
// Edits:
//
//   - Errors of values are invalid-value of type application. Those about
//     cross-connects have the texts that clients know, with the name of the list
//     in that revision. The same egress twice is "Duplicate OXC port: P", a
//     failed port is operation-failed, a busy one on a unit that does not take
//     over in-use, too many pairs too-big.
//   - A get by an ingress that the device does not have is an error; by any other
//     key that there is not, it selects nothing.
//   - A cross-connect without an egress is refused in all revisions.
//   - There is no candidate and no startup, no test-option, and no
//     continue-on-error: operation-not-supported. Any other error-option is
//     accepted, as all of them come to rollback-on-error then.
//   - The attribute operation is understood without a namespace, too, and so is
//     the element config.
//   - Every port has its entries at all times: to delete one brings back the
//     defaults. All leaves are shown, also those at their defaults.
//   - port-config and the deprecated ports show the same state.
//
// Configuration without meaning for the device is kept as text and survives a
// restart with the rest ([emulator.Edit] Notes): interfaces, servers, syslog,
// OpenFlow, protocols, activity-log, authorized keys and types of users, aps,
// subswitches (which restrict nobody), groups, hold-off times, hysteresis and
// offsets of alarms. Alarm thresholds are kept as well and are set again when the
// first client comes.
//
//   - The device has two thresholds: signal-low (power-low-alarm) raises
//     port-power-alarm, signal-degrade (power-low-alarm and its warning offset)
//     port-power-warn-alarm. High thresholds are kept but raise nothing.
//   - Passwords and secrets can be written and are never shown. A new account
//     has no password until it gets one; an account that is replaced keeps its own.
//   - MODE_VOLATILE is boot mode dark, MODE_PRESERVE is restore.
//
// Rights:
//
//   - Members of group user may read system-config but not write it, and may not
//     use the operations that concern the system: kill-session,
//     disconnect-session, system-restart, set-current-datetime,
//     radius-server-set-position. Members of view may read and subscribe.
//   - nacm shows these rules and cannot be changed. A session keeps the rights
//     that it began with, and ends when its account is deleted. A lock keeps
//     other NETCONF sessions out, not other languages. Over TLS the user is the common name in the client's
//     certificate.
//
// Notifications:
//
//   - The streams Polatis and NETCONF carry the same: power alarms, and as
//     activity what clients of any protocol change, logins here, and restarts.
//     There is no replay. system-error and aps-notification are never sent, since
//     the device has no such errors and no protection switching.
//   - Notifications are indented by two blanks, replies are compact.
//   - Without interleave, a session with a subscription is answered
//     resource-denied to all but close-session.
//   - The log and the list of alarms begin with Record or the first client. The
//     log has 1000 entries at most, each for all notifications that say the
//     same.
//
// Operations:
//
//   - system-restart without seconds reboots the network card without a reply.
//   - shutter-config without signal-restore-time means 500 ms. A programme that
//     another protocol has started is shown as set, not as active.
//   - add-group-cross-connect joins the ingress ports of one group to the egress
//     ports of the other in order, and wants as many of them.
//   - aps-command and aps-activate are not supported.
//   - Operations that change configuration (port-set-state, those on groups,
//     radius-server-set-position) honour the lock of another session as edits
//     do; other protocols know of no lock.
//
// Sessions: a client without a hello within a minute (netconf.hello), with a
// session-id in it or without a common base version is hung up on; so is one with
// a session too many or during a reboot, and one that breaks the framing, sends more than 16 MiB in one
// message, or, with base:1.0, what is not XML.
package netconfserver
